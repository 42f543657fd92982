#include "rl/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace rl {
namespace {

using Rows = std::vector<std::int64_t>;

TEST(Sampler, VisitsEachRowOncePerEpoch) {
  auto sampler = Sampler::create(10, true, 7);
  ASSERT_TRUE(sampler.ok());
  Rows orders[2];
  for (Rows& order : orders) {
    for (int i = 0; i < 5; ++i) {
      const auto batch = sampler->next(2);
      order.insert(order.end(), batch->begin(), batch->end());
    }
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 10u);
  }
  EXPECT_EQ(sampler->epoch(), 1);
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
}

// The order is part of what a run promises: the same on every machine and in every version.
TEST(Sampler, OrderIsFixed) {
  auto sampler = Sampler::create(8, true, 1);
  EXPECT_EQ(*sampler->next(8), (Rows{4, 1, 7, 5, 3, 0, 6, 2}));
  EXPECT_EQ(*sampler->next(8), (Rows{2, 0, 4, 3, 1, 6, 5, 7}));
}

TEST(Sampler, WithoutShufflingKeepsTheOrderAndDropsTheRest) {
  auto sampler = Sampler::create(5, false, 0);
  EXPECT_EQ(sampler->batches_per_epoch(2), 2);
  EXPECT_EQ(*sampler->next(2), (Rows{0, 1}));
  EXPECT_EQ(*sampler->next(2), (Rows{2, 3}));
  EXPECT_EQ(sampler->epoch(), 0);
  EXPECT_EQ(*sampler->next(2), (Rows{0, 1}));
  EXPECT_EQ(sampler->epoch(), 1);
}

TEST(Sampler, ResumesInTheMiddleOfAnEpoch) {
  auto whole = Sampler::create(23, true, 3);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(whole->next(4).ok());
  const auto saved =
      SamplerState::from_json(nlohmann::json::parse(whole->state().to_json().dump()));
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(*saved, whole->state());
  auto resumed = Sampler::resume(*saved, 23);
  ASSERT_TRUE(resumed.ok());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(*resumed->next(4), *whole->next(4));
}

TEST(Sampler, BatchSizeMayChange) {
  auto sampler = Sampler::create(6, false, 0);
  EXPECT_EQ(*sampler->next(4), (Rows{0, 1, 2, 3}));
  EXPECT_EQ(*sampler->next(2), (Rows{4, 5}));
  EXPECT_EQ(*sampler->next(6), (Rows{0, 1, 2, 3, 4, 5}));
}

TEST(Sampler, RefusesWhatCannotBe) {
  EXPECT_FALSE(Sampler::create(0, true, 0).ok());
  auto sampler = Sampler::create(3, true, 0);
  EXPECT_FALSE(sampler->next(0).ok());
  EXPECT_EQ(sampler->next(4).status().message(),
            "a batch of 4 rows from a data set of 3: lower data.train_batch_size or add data");
  EXPECT_FALSE(Sampler::resume(sampler->state(), 4).ok());
  SamplerState state = sampler->state();
  state.offset = 4;
  EXPECT_FALSE(Sampler::resume(state, 3).ok());
  state.offset = -1;
  EXPECT_FALSE(Sampler::resume(state, 3).ok());
  EXPECT_FALSE(SamplerState::from_json({{"seed", 1}}).ok());
  EXPECT_FALSE(SamplerState::from_json(nlohmann::json::array()).ok());
}

}  // namespace
}  // namespace rl
