#include "rl/worker/all_reduce_probe.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "rl/train/gloo_communicator.h"
#include "rl/worker/runtime_rendezvous.h"

namespace rl {

using runtime::Result;

Result<AllReduceResult> AllReduceProbe::measure(std::uint64_t elements, int rounds) {
  const Result<std::string> host = node_host(runtime_);
  if (!host.ok()) return host.status();
  GlooOptions options{.rank = rank_, .size = size_, .group = group_, .host = *host};
  options.deadline = std::chrono::seconds(30);
  auto communicator = make_gloo_communicator(make_runtime_rendezvous(runtime_), options);
  if (!communicator.ok()) return communicator.status();
  AllReduceResult result{.seconds = std::numeric_limits<double>::max(), .correct = true};
  std::vector<float> values(elements);
  const float sum = static_cast<float>(size_) * static_cast<float>(size_ + 1) / 2;
  for (int round = 0; round < rounds; ++round) {
    std::fill(values.begin(), values.end(), static_cast<float>(rank_ + 1));
    if (runtime::Status ready = (*communicator)->barrier(); !ready.ok()) return ready;
    const auto begin = std::chrono::steady_clock::now();
    if (runtime::Status reduced = (*communicator)->all_reduce_sum(std::span<float>(values)); !reduced.ok()) return reduced;
    result.seconds = std::min(result.seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    result.correct = result.correct && std::all_of(values.begin(), values.end(), [sum](float value) { return value == sum; });
  }
  return result;
}

void register_all_reduce_probe(runtime::Runtime& runtime) { runtime.register_actor<AllReduceProbe>(AllReduceProbe::kName, &AllReduceProbe::measure); }

}  // namespace rl
