// SumPlan: the buckets that the values of a sum travel in, and the slice of each that a rank adds
// up.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rl/mesh/arena_range.h"
#include "rl/mesh/deal.h"

namespace rl {

/// Places of values. A value; the same on every rank.
class SumPlan {
 public:
  using Slice = Dealt<std::size_t>;

  /// Buckets of neighbours, each dealt evenly.
  static SumPlan of_buckets(std::size_t values, int ranks, std::size_t bucket);
  /// Each rank adds up its own range; a bucket has a part of every range, so that all links are in
  /// use all the time.
  static SumPlan of_homes(std::span<const ArenaRange> homes, std::size_t bucket);

  std::size_t buckets() const { return buckets_; }
  Slice slice(std::size_t bucket, int rank) const;
  /// All that a rank adds up.
  std::size_t elements_of(int rank) const;

 private:
  std::size_t values_ = 0;
  std::size_t ranks_ = 1;
  std::size_t bucket_ = 0;
  std::size_t buckets_ = 0;
  std::vector<ArenaRange> homes_;  // empty: of_buckets()
};

}  // namespace rl
