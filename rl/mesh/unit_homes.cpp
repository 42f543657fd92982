#include "rl/mesh/unit_homes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rl/mesh/deal.h"
#include "runtime/core/check.h"

namespace rl {

std::vector<RangeSet> unit_homes(std::span<const RangeSet> units, std::int64_t elements,
                                 std::int64_t chunk, int ranks) {
  std::vector<std::vector<ArenaRange>> homes(static_cast<std::size_t>(ranks));
  for (const RangeSet& unit : units) {
    std::vector<ArenaRange> chunks;
    for (const ArenaRange& range : unit.ranges()) {
      for (std::int64_t first = rounded_up(range.begin, chunk); first < range.end; first += chunk)
        chunks.push_back({first, std::min(first + chunk, elements)});
    }
    for (std::size_t rank = 0; rank < homes.size(); ++rank) {
      const auto mine = deal(chunks.size(), homes.size(), rank);
      homes[rank].insert(homes[rank].end(),
                         chunks.begin() + static_cast<std::ptrdiff_t>(mine.begin),
                         chunks.begin() + static_cast<std::ptrdiff_t>(mine.end));
    }
  }
  std::vector<RangeSet> sets;
  for (std::vector<ArenaRange>& ranges : homes) sets.emplace_back(std::move(ranges));
  return sets;
}

std::vector<HomeSlices> slices_of(ArenaRange range, std::span<const RangeSet> homes) {
  std::vector<std::pair<ArenaRange, std::size_t>> owned;
  for (std::size_t rank = 0; rank < homes.size(); ++rank) {
    const RangeSet part = homes[rank].intersected({range});
    for (const ArenaRange& slice : part.ranges()) owned.emplace_back(slice, rank);
  }
  std::ranges::sort(owned, {}, [](const auto& slice) { return slice.first.begin; });
  std::vector<HomeSlices> parts;
  std::int64_t next = range.begin;
  for (const auto& [slice, rank] : owned) {
    CHECK(slice.begin == next);  // each element has one home
    if (parts.empty() || parts.back()[rank].size() > 0)
      parts.emplace_back(homes.size(), ArenaRange{slice.begin, slice.begin});
    parts.back()[rank] = slice;
    next = slice.end;
  }
  CHECK(next == range.end);
  return parts;
}

}  // namespace rl
