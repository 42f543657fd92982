#include "rl/mesh/range_set.h"

#include <algorithm>
#include <utility>

#include "rl/mesh/deal.h"
#include "runtime/core/check.h"

namespace rl {

RangeSet::RangeSet(std::vector<ArenaRange> ranges) {
  std::erase_if(ranges, [](const ArenaRange& range) { return range.size() <= 0; });
  std::ranges::sort(ranges, {}, &ArenaRange::begin);
  for (const ArenaRange& range : ranges) {
    if (!ranges_.empty() && range.begin <= ranges_.back().end)
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    else
      ranges_.push_back(range);
  }
}

std::int64_t RangeSet::elements() const {
  std::int64_t count = 0;
  for (const ArenaRange& range : ranges_) count += range.size();
  return count;
}

bool RangeSet::contains(ArenaRange range) const {
  if (range.size() <= 0) return true;
  const auto after = std::ranges::upper_bound(ranges_, range.begin, {}, &ArenaRange::begin);
  return after != ranges_.begin() && range.end <= std::prev(after)->end;
}

RangeSet RangeSet::united(const RangeSet& other) const {
  std::vector<ArenaRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return RangeSet(std::move(all));
}

RangeSet RangeSet::intersected(const RangeSet& other) const {
  RangeSet both;
  auto mine = ranges_.begin();
  auto theirs = other.ranges_.begin();
  while (mine != ranges_.end() && theirs != other.ranges_.end()) {
    const ArenaRange common{std::max(mine->begin, theirs->begin), std::min(mine->end, theirs->end)};
    if (common.size() > 0) both.ranges_.push_back(common);
    if (mine->end < theirs->end)
      ++mine;
    else
      ++theirs;
  }
  return both;
}

RangeSet RangeSet::without(const RangeSet& other) const {
  RangeSet rest;
  auto cut = other.ranges_.begin();
  for (ArenaRange range : ranges_) {
    while (cut != other.ranges_.end() && cut->end <= range.begin) ++cut;
    for (auto next = cut; next != other.ranges_.end() && next->begin < range.end; ++next) {
      if (next->begin > range.begin) rest.ranges_.push_back({range.begin, next->begin});
      range.begin = std::max(range.begin, next->end);
    }
    if (range.size() > 0) rest.ranges_.push_back(range);
  }
  return rest;
}

// Cuts the row of units that the ranges make: a range's last unit may be shorter.
RangeSet RangeSet::part(std::int64_t parts, std::int64_t index, std::int64_t unit) const {
  CHECK(unit > 0);
  std::int64_t units = 0;
  for (const ArenaRange& range : ranges_) units += (range.size() + unit - 1) / unit;
  const Dealt<std::int64_t> dealt = deal(units, parts, index);
  std::int64_t first = dealt.begin;
  std::int64_t left = dealt.size();
  RangeSet part;
  for (const ArenaRange& range : ranges_) {
    const std::int64_t here = (range.size() + unit - 1) / unit;
    if (first >= here) {
      first -= here;
      continue;
    }
    const std::int64_t taken = std::min(left, here - first);
    if (taken == 0) break;
    part.ranges_.push_back(
        {range.begin + first * unit, std::min(range.end, range.begin + (first + taken) * unit)});
    left -= taken;
    first = 0;
  }
  return part;
}

}  // namespace rl
