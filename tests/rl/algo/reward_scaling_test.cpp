#include "rl/algo/reward_scaling.h"

#include <gtest/gtest.h>

#include <vector>

namespace rl {
namespace {

TEST(RewardScaling, TheStatisticsMoveWithTheSteps) {
  const RewardScalingOptions options{.baseline = true, .normalize = true, .decay = 0.75};
  const RewardStatistics first = observe({}, std::vector<double>{1, 3}, options);
  EXPECT_EQ(first, (RewardStatistics{1, 2.0, 5.0}));  // nothing before: the first step's own
  const RewardStatistics second = observe(first, std::vector<double>{4, 8}, options);
  EXPECT_EQ(second, (RewardStatistics{2, 3.0, 0.75 * 5.0 + 0.25 * 40.0}));
  EXPECT_EQ(observe(second, {}, options), second);
}

TEST(RewardScaling, BaselineAndDeviationAreTakenSeparately) {
  const RewardStatistics past{5, 2.0, 8.0};  // a deviation of 2
  EXPECT_DOUBLE_EQ(scaled_reward(6.0, past, {.baseline = true}), 4.0);
  EXPECT_DOUBLE_EQ(scaled_reward(6.0, past, {.normalize = true}), 3.0);
  EXPECT_DOUBLE_EQ(scaled_reward(6.0, past, {.baseline = true, .normalize = true}), 2.0);
}

TEST(RewardScaling, EqualRewardsDoNotDivideByZero) {
  EXPECT_DOUBLE_EQ(scaled_reward(1.0, {1, 1.0, 1.0}, {.baseline = true, .normalize = true}), 0.0);
}

}  // namespace
}  // namespace rl
