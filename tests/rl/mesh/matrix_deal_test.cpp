#include "rl/mesh/matrix_deal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "rl/mesh/unit_homes.h"

namespace rl {
namespace {

// Matrices one behind the other, with gaps.
std::vector<ArenaMatrix> drawn_matrices(std::mt19937& random) {
  std::vector<ArenaMatrix> matrices;
  std::int64_t next = 0;
  for (auto left = random() % 20; left > 0; --left) {
    next += static_cast<std::int64_t>(random() % 9);
    matrices.push_back({next, 1 + static_cast<std::int64_t>(random() % 12),
                        1 + static_cast<std::int64_t>(random() % 12)});
    next = matrices.back().range().end;
  }
  return matrices;
}

double multiplications(const ArenaMatrix& matrix) {
  const auto shorter = static_cast<double>(std::min(matrix.rows, matrix.columns));
  const auto longer = static_cast<double>(std::max(matrix.rows, matrix.columns));
  return shorter * shorter * (3 * longer + shorter);
}

// Of the matrices of all turns, by rank.
std::vector<double> loads(const std::vector<ArenaMatrix>& matrices, const MatrixDeal& deal,
                          int ranks) {
  std::vector<double> sums(static_cast<std::size_t>(ranks), 0.0);
  for (const MatrixTurn& turn : deal.turns())
    for (std::size_t rank = 0; rank < turn.of_rank.size(); ++rank)
      if (turn.of_rank[rank] != MatrixTurn::kNone)
        sums[rank] += multiplications(matrices[static_cast<std::size_t>(turn.of_rank[rank])]);
  return sums;
}

TEST(MatrixDeal, EachMatrixHasOneRankAndTheWorkIsEven) {
  std::mt19937 random(1);
  for (int time = 0; time < 300; ++time) {
    const std::vector<ArenaMatrix> matrices = drawn_matrices(random);
    const int ranks = 1 + static_cast<int>(random() % 6);
    const std::int64_t elements = matrices.empty() ? 16 : matrices.back().range().end;
    std::vector<RangeSet> homes;
    if (random() % 2 == 0)
      homes = unit_homes(std::vector<RangeSet>{{{0, elements}}}, elements, 8, ranks, ranks);
    const MatrixDeal deal(matrices, homes, ranks);
    std::vector<int> seen;
    for (const MatrixTurn& turn : deal.turns()) {
      ASSERT_EQ(turn.of_rank.size(), static_cast<std::size_t>(ranks));
      for (const int index : turn.of_rank)
        if (index != MatrixTurn::kNone) seen.push_back(index);
    }
    std::ranges::sort(seen);
    ASSERT_EQ(seen.size(), matrices.size());
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<int>(i));
    double largest = 0;
    for (const ArenaMatrix& matrix : matrices) largest = std::max(largest, multiplications(matrix));
    const std::vector<double> work = loads(matrices, deal, ranks);
    EXPECT_LE(std::ranges::max(work) - std::ranges::min(work), 2 * largest);
  }
}

TEST(MatrixDeal, AMatrixIsWorkedOnWhereMostOfItIsKept) {
  const std::vector<ArenaMatrix> matrices = {{0, 4, 4}, {16, 4, 4}, {32, 4, 4}, {48, 4, 4}};
  const std::vector<RangeSet> homes = {{{24, 56}}, {{0, 24}, {56, 64}}};
  const MatrixDeal deal(matrices, homes, 2);
  ASSERT_EQ(deal.turns().size(), 2u);
  EXPECT_EQ(deal.turns()[0].of_rank, (std::vector<int>{1, 0}));
  EXPECT_EQ(deal.turns()[1].of_rank, (std::vector<int>{2, 3}));
  EXPECT_EQ(deal.most_in_piece(), 8) << "half of matrix 1, or of 3, comes from the other rank";
}

// Where each rank has all of the arena, it is sent all matrices of a turn. They come in small
// pieces, so that it needs room for about one matrix.
TEST(MatrixDeal, ManyMatricesComeInPieces) {
  std::vector<ArenaMatrix> matrices;
  for (std::int64_t i = 0; i < 8; ++i) matrices.push_back({i * 100, 10, 10});
  const MatrixDeal deal(matrices, {}, 8);
  ASSERT_EQ(deal.turns().size(), 1u);
  const MatrixTurn& turn = deal.turns().front();
  EXPECT_EQ(turn.pieces, 7);
  EXPECT_LE(deal.most_in_piece(), 110);
  std::int64_t next = matrices[3].offset;
  for (int piece = 0; piece < turn.pieces; ++piece) {
    const ArenaRange range = turn.piece(matrices[3], piece);
    EXPECT_EQ(range.begin, next);
    next = range.end;
  }
  EXPECT_EQ(next, matrices[3].range().end);
  EXPECT_EQ(MatrixDeal(matrices, {}, 2).turns().front().pieces, 1);
}

}  // namespace
}  // namespace rl
