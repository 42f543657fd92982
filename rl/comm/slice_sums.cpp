#include "rl/comm/slice_sums.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

void SliceSums::begin(std::span<const float> values, std::vector<Part> parts,
                      const std::string& what) {
  CHECK(!is_under_way());
  values_ = values;
  parts_ = std::move(parts);
  const int rank = communicator_.rank(), ranks = communicator_.size();
  std::size_t count = 0;
  const auto for_each_received = [&](const auto& use) {
    for (const Part& part : parts_) {
      const auto mine = static_cast<std::size_t>(part.slices[at(rank)].size());
      for (int peer = 0; peer < ranks; ++peer)
        if (peer != rank && part.adds[at(peer)] != 0 && mine > 0) use(peer, mine);
    }
  };
  for_each_received([&](int, std::size_t mine) { count += mine; });
  received_.resize(count);
  std::vector<Incoming> received;
  std::size_t begin = 0;
  for_each_received([&](int peer, std::size_t mine) {
    received.push_back({peer, std::as_writable_bytes(std::span(received_).subspan(begin, mine))});
    begin += mine;
  });
  std::vector<Outgoing> sent;
  for (const Part& part : parts_) {
    if (part.adds[at(rank)] == 0) continue;
    for (int peer = 0; peer < ranks; ++peer) {
      const ArenaRange& theirs = part.slices[at(peer)];
      if (peer != rank && theirs.size() > 0)
        sent.push_back({peer, std::as_bytes(part_of(values_, theirs))});
    }
  }
  transfer_ = communicator_.begin_exchange(sent, received, what);
}

runtime::Status SliceSums::finish(bool last_round) {
  if (!is_under_way()) return {};
  const std::vector<Part> parts = std::exchange(parts_, {});
  if (const runtime::Status status = communicator_.finish(transfer_); !status.ok()) return status;
  std::size_t received = 0;
  for (const Part& part : parts) {
    add(part, received);
    SumRounds<float>& rounds = *part.rounds;
    rounds.begun = !last_round && (rounds.begun || std::ranges::any_of(part.adds, std::identity()));
  }
  return {};
}

void SliceSums::add(const Part& part, std::size_t& received) const {
  const int rank = communicator_.rank();
  const std::span<const float> own = part_of(values_, part.slices[at(rank)]);
  std::vector<std::span<const float>> terms;
  for (int peer = 0; peer < communicator_.size(); ++peer) {
    if (part.adds[at(peer)] == 0) continue;
    if (peer == rank) {
      terms.push_back(own);
    } else if (!own.empty()) {
      terms.push_back(std::span<const float>(received_).subspan(received, own.size()));
      received += own.size();
    }
  }
  SumRounds<float>& rounds = *part.rounds;
  CHECK(rounds.kept && rounds.place.size() == own.size());
  add_terms<float>(rounds.place, rounds.begun, terms);
}

}  // namespace rl
