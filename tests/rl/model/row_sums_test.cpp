#include "rl/model/row_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(RowSums, AddsRowsInTheirOrder) {
  const at::Tensor rows = at::randn({5, 3});
  const RowSums sums({4, 0, 4, 4, 1});
  at::Tensor into = at::ones({6, 3});
  sums.add(into, rows);
  EXPECT_TRUE(into[4].equal(((1 + rows[0]) + rows[2]) + rows[3]));
  EXPECT_TRUE(into[0].equal(1 + rows[1]));
  EXPECT_TRUE(into[1].equal(1 + rows[4]));
  EXPECT_TRUE(into[5].equal(at::ones({3})));
  EXPECT_EQ(sums.destinations(), (std::vector<std::int64_t>{0, 1, 4}));
}

TEST(RowSums, OfNoRowsAreNothing) {
  const RowSums sums({});
  at::Tensor into = at::ones({2, 3});
  sums.add(into, at::zeros({0, 3}));
  EXPECT_TRUE(into.equal(at::ones({2, 3})));
  EXPECT_TRUE(sums.destinations().empty());
}

}  // namespace
}  // namespace rl
