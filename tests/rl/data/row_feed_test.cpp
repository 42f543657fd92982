#include "rl/data/row_feed.h"

#include <gtest/gtest.h>

#include "rl/data/toy.h"

namespace rl {
namespace {

Dataset ten_rows() { return make_toy_dataset({.rows = 10}); }

TEST(RowFeed, EveryRowComesOnceAnEpochAndWhatFillsNoBatchIsLeftOut) {
  auto feed = RowFeed::create(ten_rows(), {.batch_rows = 4, .shuffle = false});
  ASSERT_TRUE(feed.ok());
  EXPECT_EQ(feed->batches_per_epoch(), 2);
  EXPECT_EQ(*feed->next(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(*feed->next(), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(*feed->next(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(feed->epoch(), 1);
}

TEST(RowFeed, InOrderTheLastBatchHasWhatIsLeft) {
  const auto feed = RowFeed::create(ten_rows(), {});
  EXPECT_EQ(feed->in_order(4).back(), (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(feed->in_order(5).size(), 2u);
}

TEST(RowFeed, GoesOnWhereItWasAndNotInOtherData) {
  auto feed = RowFeed::create(ten_rows(), {.batch_rows = 3, .shuffle_seed = 7});
  auto again = RowFeed::create(ten_rows(), {.batch_rows = 3, .shuffle_seed = 7});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(feed->next().ok());
  ASSERT_TRUE(again->resume(feed->position()).ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(*feed->next(), *again->next());
  auto other = RowFeed::create(make_toy_dataset({.rows = 9}), {.batch_rows = 3});
  EXPECT_EQ(other->resume(feed->position()).code(), runtime::ErrorCode::kInvalidArgument);
}

TEST(RowFeed, FewerRowsThanABatchNameTheKey) {
  const auto feed =
      RowFeed::create(ten_rows(), {.batch_rows = 11, .batch_key = "data.gen_batch_size"});
  EXPECT_NE(feed.status().message().find("set data.gen_batch_size"), std::string::npos)
      << feed.status().message();
}

}  // namespace
}  // namespace rl
