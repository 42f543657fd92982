// RangeSet: a set of an arena's elements.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "rl/mesh/arena_range.h"

namespace rl {

/// A set of elements as sorted, disjoint, non-empty ranges that do not touch. A value.
class RangeSet {
 public:
  RangeSet() = default;
  /// In any order; they may overlap or be empty.
  explicit RangeSet(std::vector<ArenaRange> ranges);
  RangeSet(std::initializer_list<ArenaRange> ranges) : RangeSet(std::vector(ranges)) {}

  std::span<const ArenaRange> ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  std::int64_t elements() const;

  bool contains(ArenaRange range) const;

  RangeSet united(const RangeSet& other) const;
  RangeSet intersected(const RangeSet& other) const;
  RangeSet without(const RangeSet& other) const;

  /// Part `index` of `parts` of its elements in order, cut at multiples of `unit` from the start of
  /// each range. No part has more than ceil(elements / parts) rounded up to a unit. Together the
  /// parts are the set, and no two of them overlap.
  RangeSet part(std::int64_t parts, std::int64_t index, std::int64_t unit) const;

  bool operator==(const RangeSet&) const = default;

 private:
  std::vector<ArenaRange> ranges_;
};

}  // namespace rl
