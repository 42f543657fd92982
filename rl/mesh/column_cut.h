// ColumnCut: a tensor's columns, or its rows, divided over the ranks of a team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl/mesh/deal.h"

namespace rl {

/// A value; ranks have neighbouring columns, in the order of ranks, and some may have none.
class ColumnCut {
 public:
  ColumnCut() = default;
  /// `things` (heads, say) of `width` columns each, none of which is cut.
  ColumnCut(std::int64_t things, std::int64_t width, int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      ends_.push_back(deal<std::int64_t>(things, ranks, rank).end * width);
  }

  /// The ranks' numbers of columns.
  static ColumnCut of_sizes(const std::vector<std::int64_t>& sizes) {
    ColumnCut cut;
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) cut.ends_.push_back(end += size);
    return cut;
  }

  int ranks() const { return static_cast<int>(ends_.size()); }
  std::int64_t total() const { return ends_.empty() ? 0 : ends_.back(); }
  std::int64_t first(int rank) const {
    return rank == 0 ? 0 : ends_[static_cast<std::size_t>(rank) - 1];
  }
  std::int64_t size(int rank) const { return ends_[static_cast<std::size_t>(rank)] - first(rank); }

  bool operator==(const ColumnCut&) const = default;

 private:
  std::vector<std::int64_t> ends_;
};

}  // namespace rl
