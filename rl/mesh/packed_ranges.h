// PackedRanges: the places of a set's elements when they stand one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rl/mesh/range_set.h"

namespace rl {

/// The elements of a set in their order, without what is between them. A value.
class PackedRanges {
 public:
  PackedRanges() = default;
  explicit PackedRanges(RangeSet set);

  const RangeSet& set() const { return set_; }
  std::int64_t elements() const { return places_.empty() ? 0 : places_.back(); }

  /// The places of a range of elements that the set contains.
  ArenaRange packed(ArenaRange range) const;
  /// The places of the elements of `ranges` that the set contains.
  std::vector<ArenaRange> packed_parts(std::span<const ArenaRange> ranges) const;

 private:
  RangeSet set_;
  std::vector<std::int64_t> places_;  // of the first element of each range, from 0; and the end
};

}  // namespace rl
