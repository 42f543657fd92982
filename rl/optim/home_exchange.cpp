#include "rl/optim/home_exchange.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl/optim/optimizer.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Of what is collected at a time: 8 MiB.
constexpr std::int64_t kPieceElements = std::int64_t{1} << 21;

std::int64_t chunks_of(std::int64_t elements) { return (elements + kNormChunk - 1) / kNormChunk; }

// Writes packed values to their places; `from` is the place of the first of them.
void unpack(const PackedRanges& home, std::int64_t from, std::span<const float> values,
            std::span<float> whole) {
  const ArenaRange wanted{from, from + std::ssize(values)};
  for (const ArenaRange& range : home.set().ranges()) {
    const ArenaRange packed = home.packed(range);
    const ArenaRange both{std::max(packed.begin, wanted.begin), std::min(packed.end, wanted.end)};
    if (both.size() <= 0) continue;
    const std::int64_t begin = range.begin + both.begin - packed.begin;
    std::ranges::copy(part_of(values, {both.begin - from, both.end - from}),
                      part_of(whole, {begin, begin + both.size()}).begin());
  }
}

}  // namespace

Result<double> norm_of_homes(Communicator& communicator, kernel::ThreadPool& pool,
                             std::span<const PackedRanges> homes, std::span<const float> of_home) {
  const std::vector<double> mine = square_sums(pool, of_home);
  std::vector<std::vector<double>> sums;
  std::vector<std::span<std::byte>> others;
  std::int64_t elements = 0;
  for (const PackedRanges& home : homes) {
    elements += home.elements();
    sums.emplace_back(static_cast<std::size_t>(chunks_of(home.elements())));
  }
  for (std::vector<double>& of_rank : sums)
    others.push_back(std::as_writable_bytes(std::span(of_rank)));
  const Status gathered =
      communicator.all_gather(std::as_bytes(std::span(mine)), others, "squares of the gradient");
  if (!gathered.ok()) return gathered;
  sums[static_cast<std::size_t>(communicator.rank())] = mine;
  // In the arena's order.
  std::vector<double> all(static_cast<std::size_t>(chunks_of(elements)));
  for (std::size_t rank = 0; rank < homes.size(); ++rank) {
    std::size_t next = 0;
    for (const ArenaRange& range : homes[rank].set().ranges())
      for (std::int64_t first = range.begin; first < range.end; first += kNormChunk)
        all[static_cast<std::size_t>(first / kNormChunk)] = sums[rank][next++];
  }
  return norm_of(all);
}

Status collect_homes(Communicator& communicator, std::span<const PackedRanges> homes,
                     std::span<const float> of_home, std::span<float> whole) {
  const auto mine = static_cast<std::size_t>(communicator.rank());
  const bool receives = mine == 0;
  if (receives) unpack(homes[mine], 0, of_home, whole);
  std::int64_t largest = 0;
  for (const PackedRanges& home : homes) largest = std::max(largest, home.elements());
  std::vector<std::vector<float>> arrived(homes.size());
  for (std::int64_t first = 0; first < largest; first += kPieceElements) {
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (std::size_t rank = 1; rank < homes.size(); ++rank) {
      const std::int64_t end = std::min(first + kPieceElements, homes[rank].elements());
      const ArenaRange piece{std::min(first, end), end};
      if (receives) {
        arrived[rank].resize(static_cast<std::size_t>(piece.size()));
        received.push_back(
            {static_cast<int>(rank), std::as_writable_bytes(std::span(arrived[rank]))});
      } else if (rank == mine) {
        sent.push_back({0, std::as_bytes(part_of(of_home, piece))});
      }
    }
    const Status moved = communicator.all_to_all(sent, received, "what the ranks keep");
    if (!moved.ok()) return moved;
    for (std::size_t rank = 1; receives && rank < homes.size(); ++rank)
      unpack(homes[rank], first, arrived[rank], whole);
  }
  return {};
}

}  // namespace rl
