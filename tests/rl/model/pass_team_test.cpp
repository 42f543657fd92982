// Messages among the ranks of a team, and how they deal rows. Ranks are threads.
#include "rl/model/pass_team.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <vector>

#include "rl/model/linear_backward.h"
#include "rl/model/ops.h"
#include "rl/model/parallel.h"
#include "tests/rl/model/team_threads.h"

namespace rl {
namespace {

using testing::on_each_rank;

at::Tensor numbers(std::int64_t rows, std::int64_t columns) {
  return at::arange(rows * columns, at::kFloat).view({rows, columns});
}

TEST(PassTeam, RowsBecomeColumnsAndRowsAgain) {
  const at::Tensor whole = numbers(7, 5);
  const ColumnCut rows = ColumnCut::of_sizes({4, 0, 3});
  const ColumnCut columns(5, 1, 3);
  on_each_rank(3, PassCut::kRows, [&](const PassTeam& team) {
    const at::Tensor own = team.own_rows(whole, rows).contiguous();
    EXPECT_TRUE(team.all_rows(own, rows, "rows").equal(whole));
    const at::Tensor there = team.columns_of_rows(own, rows, columns, "columns");
    EXPECT_TRUE(there.equal(team.own_columns(whole, columns)));
    EXPECT_TRUE(team.rows_of_columns(there, columns, rows, "back").equal(own));
  });
}

TEST(PassTeam, RanksLearnWhereRowsLie) {
  on_each_rank(3, PassCut::kRows, [&](const PassTeam& team) {
    const std::vector<std::int64_t> own = {team.rank(), 0, 5 - team.rank()};
    const std::vector<ColumnCut> cuts = team.row_cuts(own, "rows");
    EXPECT_EQ(cuts, (std::vector<ColumnCut>{ColumnCut::of_sizes({0, 1, 2}),
                                            ColumnCut::of_sizes({0, 0, 0}),
                                            ColumnCut::of_sizes({5, 4, 3})}));
  });
}

// Sums over blocks are then those of one rank.
TEST(PassTeam, RanksHaveWholeBlocksOfRows) {
  for (const std::int64_t rows : {0, 1, 63, 64, 65, 200, 512, 1216, 5001}) {
    for (const int ranks : {1, 2, 3, 8}) {
      const auto dealt = ops::rows_of_ranks(rows, ranks);
      const ColumnCut of_blocks = ops::blocks_of_ranks(rows, ranks);
      const std::vector<Block> blocks = cut(rows, ops::kRowsLeast, at::kCPU);
      EXPECT_EQ(dealt->total(), rows);
      EXPECT_EQ(dealt->ranks(), ranks);
      EXPECT_EQ(of_blocks.total(), std::ssize(blocks));
      std::vector<std::int64_t> whole(static_cast<std::size_t>(ranks), 0);
      for (const Block& block : blocks) {
        for (int rank = 0; rank < ranks; ++rank) {
          const std::int64_t first = block.first - dealt->first(rank);
          if (first >= 0 && first + block.count <= dealt->size(rank))
            ++whole[static_cast<std::size_t>(rank)];
        }
      }
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(whole[static_cast<std::size_t>(rank)], of_blocks.size(rank))
            << rows << " rows, rank " << rank << " of " << ranks;
      }
    }
  }
}

}  // namespace
}  // namespace rl
