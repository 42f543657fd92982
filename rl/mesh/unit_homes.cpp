#include "rl/mesh/unit_homes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rl/mesh/deal.h"
#include "runtime/core/check.h"

namespace rl {

std::vector<RangeSet> unit_homes(std::span<const RangeSet> units, std::int64_t elements,
                                 std::int64_t chunk, int ranks, int group) {
  CHECK(group > 0);
  CHECK(ranks % group == 0);
  const auto places = static_cast<std::size_t>(group);
  std::vector<std::vector<ArenaRange>> homes(static_cast<std::size_t>(ranks));
  for (const RangeSet& unit : units) {
    std::vector<ArenaRange> chunks;
    for (const ArenaRange& range : unit.ranges()) {
      for (std::int64_t first = rounded_up(range.begin, chunk); first < range.end; first += chunk)
        chunks.push_back({first, std::min(first + chunk, elements)});
    }
    for (std::size_t rank = 0; rank < homes.size(); ++rank) {
      const auto of_place = deal(chunks.size(), places, rank % places);
      const auto mine = deal(of_place.size(), homes.size() / places, rank / places);
      const auto first = chunks.begin() + static_cast<std::ptrdiff_t>(of_place.begin);
      homes[rank].insert(homes[rank].end(), first + static_cast<std::ptrdiff_t>(mine.begin),
                         first + static_cast<std::ptrdiff_t>(mine.end));
    }
  }
  std::vector<RangeSet> sets;
  for (std::vector<ArenaRange>& ranges : homes) sets.emplace_back(std::move(ranges));
  return sets;
}

std::vector<RangeSet> group_homes(std::span<const RangeSet> homes, int group) {
  CHECK(group > 0);
  const auto places = static_cast<std::size_t>(group);
  std::vector<RangeSet> of_place(places);
  for (std::size_t rank = 0; rank < homes.size(); ++rank)
    of_place[rank % places] = of_place[rank % places].united(homes[rank]);
  std::vector<RangeSet> kept;
  for (std::size_t rank = 0; rank < homes.size(); ++rank) kept.push_back(of_place[rank % places]);
  return kept;
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
