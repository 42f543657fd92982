#include "rl/mesh/packed_ranges.h"

#include <algorithm>
#include <cstddef>

#include "runtime/core/check.h"

namespace rl {

PackedRanges::PackedRanges(RangeSet set) : set_(std::move(set)) {
  std::int64_t place = 0;
  for (const ArenaRange& range : set_.ranges()) {
    places_.push_back(place);
    place += range.size();
  }
  if (place > 0) places_.push_back(place);
}

ArenaRange PackedRanges::packed(ArenaRange range) const {
  if (range.size() <= 0) return {};
  CHECK(set_.contains(range));
  const std::span<const ArenaRange> ranges = set_.ranges();
  const auto after = std::ranges::upper_bound(ranges, range.begin, {}, &ArenaRange::begin);
  const auto index = static_cast<std::size_t>(after - ranges.begin()) - 1;
  const std::int64_t begin = places_[index] + range.begin - ranges[index].begin;
  return {begin, begin + range.size()};
}

std::vector<ArenaRange> PackedRanges::packed_parts(std::span<const ArenaRange> ranges) const {
  std::vector<ArenaRange> parts;
  const RangeSet inside =
      set_.intersected(RangeSet(std::vector<ArenaRange>(ranges.begin(), ranges.end())));
  for (const ArenaRange& range : inside.ranges()) parts.push_back(packed(range));
  return parts;
}

}  // namespace rl
