// One sum by itself; those of an arena are gradient_arena_test.cpp's.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "rl/model/gradient_arena.h"
#include "rl/model/tensor_span.h"

namespace rl {
namespace {

constexpr std::int64_t kSumRows = 40;

// A table whose memory holds anything.
class GradientSumTest : public ::testing::Test {
 protected:
  std::vector<std::int64_t> rows_that_are_not_zero() const {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < kSumRows; ++row) {
      const auto values = elements_of(table_).subspan(static_cast<std::size_t>(2 * row), 2);
      if (values[0] != 0.0F || values[1] != 0.0F) rows.push_back(row);
    }
    return rows;
  }
  void write(const std::vector<std::int64_t>& rows) {
    for (const std::int64_t row : rows) table_[row].fill_(1.0F);
  }

  using Rows = std::vector<std::int64_t>;
  at::Tensor table_ = at::full({kSumRows, 2}, 7.0F);
  std::shared_ptr<bool> paused_ = std::make_shared<bool>(false);
  GradientSum sum_{table_, paused_};
};

TEST_F(GradientSumTest, OnlyTheFirstAdditionWritesOver) {
  EXPECT_TRUE(sum_.begin());
  EXPECT_FALSE(sum_.begin());
  sum_.forget();
  EXPECT_TRUE(sum_.begin());
}

TEST_F(GradientSumTest, RowsThatNothingWasAddedToAreZero) {
  EXPECT_TRUE(sum_.begin());  // the memory is written over
  table_.fill_(7.0F);
  sum_.forget();
  sum_.begin_rows({3, 20});
  EXPECT_EQ(rows_that_are_not_zero(), Rows());
  write({3, 20});
  sum_.begin_rows({4});
  write({4});
  EXPECT_EQ(rows_that_are_not_zero(), (Rows{3, 4, 20})) << "what was added stays";
  sum_.forget();
  sum_.begin_rows({5});
  EXPECT_EQ(rows_that_are_not_zero(), Rows());
}

TEST_F(GradientSumTest, AWholeSumBehindRowsDoesNotBeginAgain) {
  sum_.forget();
  sum_.begin_rows({1});
  write({1});
  EXPECT_FALSE(sum_.begin()) << "it is added to what the rows have";
  sum_.forget();
  sum_.settle();
  EXPECT_EQ(rows_that_are_not_zero(), Rows()) << "all of it was written";
}

TEST_F(GradientSumTest, WhatIsSettledIsTheSumOrZero) {
  EXPECT_TRUE(sum_.begin());
  table_.fill_(5.0F);
  sum_.settle();
  EXPECT_EQ(rows_that_are_not_zero().size(), static_cast<std::size_t>(kSumRows));
  sum_.forget();
  sum_.settle();
  EXPECT_EQ(rows_that_are_not_zero(), Rows());
  EXPECT_TRUE(sum_.begin());
}

TEST_F(GradientSumTest, MemoryThatWasGivenBackIsNotZeroed) {
  EXPECT_TRUE(sum_.begin());
  sum_.drop();
  table_.fill_(9.0F);
  sum_.settle();
  EXPECT_EQ(rows_that_are_not_zero().size(), static_cast<std::size_t>(kSumRows));
}

TEST_F(GradientSumTest, IsPausedAsItsArenaIs) {
  EXPECT_FALSE(sum_.is_paused());
  *paused_ = true;
  EXPECT_TRUE(sum_.is_paused());
}

}  // namespace
}  // namespace rl
