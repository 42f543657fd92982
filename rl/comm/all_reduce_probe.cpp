#include "rl/comm/all_reduce_probe.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "rl/comm/gloo_communicator.h"
#include "rl/comm/runtime_rendezvous.h"
#include "rl/cuda/nccl_library.h"

namespace rl {

using runtime::Result;

namespace {

constexpr std::chrono::seconds kRendezvousPatience{30};

/// Rounds of sums that are known. `reduce(values, seconds)`: all ranks' sum of the values, and how
/// long that took.
template <class Reduce>
Result<AllReduceResult> run_rounds(std::uint64_t elements, int rounds, int rank, int size,
                                   Reduce&& reduce) {
  AllReduceResult result{.seconds = std::numeric_limits<double>::max(), .correct = true};
  std::vector<float> values(elements);
  const float sum = static_cast<float>(size) * static_cast<float>(size + 1) / 2;
  for (int round = 0; round < rounds; ++round) {
    std::fill(values.begin(), values.end(), static_cast<float>(rank + 1));
    double seconds = 0;
    if (runtime::Status reduced = reduce(std::span<float>(values), seconds); !reduced.ok())
      return reduced;
    result.seconds = std::min(result.seconds, seconds);
    result.correct = result.correct && std::all_of(values.begin(), values.end(),
                                                   [sum](float value) { return value == sum; });
  }
  return result;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Result<AllReduceResult> AllReduceProbe::measure(std::uint64_t elements, int rounds) {
  const Result<std::string> host = node_host(runtime_);
  if (!host.ok()) return host.status();
  GlooOptions options{.rank = rank_, .size = size_, .group = group_, .host = *host};
  options.deadline = kRendezvousPatience;
  options.exchange_deadline = kRendezvousPatience;
  auto communicator = make_gloo_communicator(make_runtime_rendezvous(runtime_), options);
  if (!communicator.ok()) return communicator.status();
  return run_rounds(elements, rounds, rank_, size_,
                    [&](std::span<float> values, double& seconds) -> runtime::Status {
                      if (runtime::Status ready = (*communicator)->barrier(); !ready.ok())
                        return ready;
                      const auto begin = std::chrono::steady_clock::now();
                      const runtime::Status reduced = (*communicator)->all_reduce_sum(values);
                      seconds = seconds_since(begin);
                      return reduced;
                    });
}

Result<std::string> AllReduceProbe::nccl_version() {
  auto library = NcclLibrary::load();
  if (!library.ok()) return library.status();
  return (*library)->version();
}

Result<AllReduceResult> AllReduceProbe::measure_nccl(std::uint64_t elements, int rounds) {
  auto library = NcclLibrary::load();
  if (!library.ok()) return library.status();
  const auto rendezvous = make_runtime_rendezvous(runtime_);
  const std::string key = group_ + "/nccl";
  NcclId id{};
  if (rank_ == 0) {
    auto made = (*library)->make_id();
    if (!made.ok()) return made.status();
    id = *made;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(id.data());
    if (runtime::Status told = rendezvous->put(key, std::span(bytes, id.size())); !told.ok())
      return told;
  } else {
    auto told = rendezvous->get(key, kRendezvousPatience);
    if (!told.ok()) return told.status();
    if (told->size() != id.size())
      return runtime::internal_error("an id of " + std::to_string(told->size()) + " bytes");
    std::copy(told->begin(), told->end(), id.begin());
  }
  auto joined = (*library)->join(id, rank_, size_, elements);
  if (!joined.ok()) return joined.status();
  // The first sum sets up connections: it is not measured, and its end is a barrier.
  if (runtime::Status ready = (*joined)->all_reduce_sum(std::min<std::size_t>(elements, 1));
      !ready.ok())
    return ready;
  return run_rounds(elements, rounds, rank_, size_,
                    [&](std::span<float> values, double& seconds) -> runtime::Status {
                      if (runtime::Status written = (*joined)->write(values); !written.ok())
                        return written;
                      const auto begin = std::chrono::steady_clock::now();
                      if (runtime::Status reduced = (*joined)->all_reduce_sum(values.size());
                          !reduced.ok())
                        return reduced;
                      seconds = seconds_since(begin);
                      return (*joined)->read(values);
                    });
}

void register_all_reduce_probe(runtime::Runtime& runtime) {
  runtime.register_actor<AllReduceProbe>(AllReduceProbe::kName, &AllReduceProbe::measure,
                                         &AllReduceProbe::nccl_version,
                                         &AllReduceProbe::measure_nccl);
}

}  // namespace rl
