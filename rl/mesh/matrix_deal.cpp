#include "rl/mesh/matrix_deal.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "rl/mesh/deal.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// In proportion to the multiplications of Newton-Schulz, whose products are as wide as the shorter
// side.
double cost_of(const ArenaMatrix& matrix) {
  const auto shorter = static_cast<double>(std::min(matrix.rows, matrix.columns));
  const auto longer = static_cast<double>(std::max(matrix.rows, matrix.columns));
  return shorter * shorter * (3.0 * longer + shorter);
}

std::int64_t kept_of(const ArenaRange& range, std::span<const RangeSet> homes, std::size_t rank) {
  return homes.empty() ? range.size() : homes[rank].intersected({range}).elements();
}

// By rank, in the order of their costs.
std::vector<std::vector<int>> dealt(std::span<const ArenaMatrix> matrices,
                                    std::span<const RangeSet> homes, int ranks) {
  std::vector<int> order(matrices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto cost_at = [&](int index) {
    return cost_of(matrices[static_cast<std::size_t>(index)]);
  };
  std::ranges::stable_sort(order, [&](int a, int b) { return cost_at(a) > cost_at(b); });
  std::vector<std::vector<int>> of_rank(static_cast<std::size_t>(ranks));
  std::vector<double> loads(of_rank.size(), 0.0);
  for (const int index : order) {
    const ArenaRange range = matrices[static_cast<std::size_t>(index)].range();
    const double most = std::ranges::min(loads) + cost_at(index);
    std::size_t best = loads.size();
    std::int64_t best_kept = 0;
    for (std::size_t rank = 0; rank < loads.size(); ++rank) {
      if (loads[rank] > most) continue;
      const std::int64_t kept = kept_of(range, homes, rank);
      const bool better = best == loads.size() || kept > best_kept ||
                          (kept == best_kept && loads[rank] < loads[best]);
      if (!better) continue;
      best = rank;
      best_kept = kept;
    }
    loads[best] += cost_at(index);
    of_rank[best].push_back(index);
  }
  return of_rank;
}

// What the rank that has most sends, or receives, of a piece.
std::int64_t most_of_piece(const MatrixTurn& turn, int piece, std::span<const ArenaMatrix> matrices,
                           std::span<const RangeSet> homes) {
  std::vector<std::int64_t> moved(turn.of_rank.size(), 0);
  for (std::size_t owner = 0; owner < moved.size(); ++owner) {
    if (turn.of_rank[owner] == MatrixTurn::kNone) continue;
    const ArenaMatrix& matrix = matrices[static_cast<std::size_t>(turn.of_rank[owner])];
    const ArenaRange range = turn.piece(matrix, piece);
    for (std::size_t rank = 0; rank < moved.size(); ++rank)
      if (rank != owner) moved[rank] += kept_of(range, homes, rank);
  }
  return std::ranges::max(moved);
}

}  // namespace

ArenaRange MatrixTurn::piece(const ArenaMatrix& matrix, int index) const {
  const auto part = deal<std::int64_t>(matrix.elements(), pieces, index);
  return {matrix.offset + part.begin, matrix.offset + part.end};
}

// A turn is cut into pieces where a rank would else have more of the others' matrices than twice
// the largest one.
MatrixDeal::MatrixDeal(std::span<const ArenaMatrix> matrices, std::span<const RangeSet> homes,
                       int ranks) {
  CHECK(homes.empty() || homes.size() == static_cast<std::size_t>(ranks));
  const std::vector<std::vector<int>> of_rank = dealt(matrices, homes, ranks);
  for (std::size_t next = 0;; ++next) {
    MatrixTurn turn{std::vector<int>(of_rank.size(), MatrixTurn::kNone)};
    std::int64_t largest = 0;
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      if (next >= of_rank[rank].size()) continue;
      turn.of_rank[rank] = of_rank[rank][next];
      largest =
          std::max(largest, matrices[static_cast<std::size_t>(of_rank[rank][next])].elements());
    }
    if (largest == 0) return;
    const std::int64_t most = most_of_piece(turn, 0, matrices, homes);
    if (most > 2 * largest)
      turn.pieces = static_cast<int>(std::min<std::int64_t>(ranks, (most + largest - 1) / largest));
    for (int piece = 0; piece < turn.pieces; ++piece)
      most_in_piece_ = std::max(most_in_piece_, most_of_piece(turn, piece, matrices, homes));
    turns_.push_back(std::move(turn));
  }
}

}  // namespace rl
