// MatrixDeal: the assignment of whole matrices to ranks that keep parts of an arena, for work that
// needs a matrix whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/mesh/range_set.h"

namespace rl {

/// A matrix in the arena, row-major.
struct ArenaMatrix {
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t elements() const { return rows * columns; }
  ArenaRange range() const { return {offset, offset + elements()}; }

  bool operator==(const ArenaMatrix&) const = default;
};

/// Matrices that are worked on at the same time, one of a rank at most.
struct MatrixTurn {
  static constexpr int kNone = -1;
  std::vector<int> of_rank;  // the index of its matrix, or kNone
  int pieces = 1;            // in which the matrices come and go

  /// The elements of a matrix that are in such a piece.
  ArenaRange piece(const ArenaMatrix& matrix, int index) const;
};

/// A value, the same on every rank. Matrices are dealt by the cost of their orthogonalization, the
/// most expensive ones first. Each goes to a rank that has little to do yet, and of these to the
/// one that keeps most of it. Each rank works on its own in that order, one a turn.
class MatrixDeal {
 public:
  MatrixDeal() = default;
  /// `homes` by rank, disjoint: what it keeps. Empty: each rank has all of the arena.
  MatrixDeal(std::span<const ArenaMatrix> matrices, std::span<const RangeSet> homes, int ranks);

  std::span<const MatrixTurn> turns() const { return turns_; }

  /// The most that a rank has of other ranks' matrices in a piece: elements of its buffer.
  std::int64_t most_in_piece() const { return most_in_piece_; }

 private:
  std::vector<MatrixTurn> turns_;
  std::int64_t most_in_piece_ = 0;
};

}  // namespace rl
