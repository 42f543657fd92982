#include "rl/algo/group_advantage.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

TEST(GroupAdvantage, GroupsMayBeInterleaved) {
  const std::vector<float> scores = {1, 10, 3, 20};
  const std::vector<std::int64_t> groups = {7, -1, 7, -1};
  EXPECT_EQ(grpo_advantages(scores, groups, /*normalize_by_std=*/false),
            (std::vector<float>{-1, -5, 1, 5}));
}

TEST(GroupAdvantage, EqualScoresGiveNoAdvantage) {
  const std::vector<float> scores = {0.5F, 0.5F, 0.5F};
  const std::vector<std::int64_t> groups = {1, 1, 1};
  EXPECT_EQ(grpo_advantages(scores, groups), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(rloo_advantages(scores, groups), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(grpo_passk_advantages(scores, groups), (std::vector<float>{0, 0, 0}));
}

TEST(GroupAdvantage, ResponseAloneKeepsItsScore) {
  const std::vector<float> scores = {0.75F};
  const std::vector<std::int64_t> groups = {3};
  EXPECT_NEAR(grpo_advantages(scores, groups)[0], 0.75F, 1e-5F);
  EXPECT_EQ(rloo_advantages(scores, groups)[0], 0.75F);
}

TEST(GroupAdvantage, RlooLeavesTheResponseOutOfItsBaseline) {
  const std::vector<float> scores = {4, 1, 2};
  const std::vector<std::int64_t> groups = {0, 0, 0};
  const std::vector<float> advantages = rloo_advantages(scores, groups);
  EXPECT_FLOAT_EQ(advantages[0], 4 - 1.5F);
  EXPECT_FLOAT_EQ(advantages[1], 1 - 3.0F);
}

TEST(GroupAdvantage, GdpoDoesNotLetARewardOfLargeSpreadDrownAnother) {
  // The second reward is a thousand times the first. GRPO of the sum sees nearly only that one;
  // GDPO sees both alike, and its tokens have mean 0 and deviation 1.
  const std::vector<std::vector<float>> rewards = {{1, 0, 1, 0}, {0, 1000, 0, 1000}};
  const std::vector<std::int64_t> groups = {0, 0, 0, 0};
  const std::vector<std::int64_t> lengths = {1, 2, 3, 4};
  const std::vector<float> sums = {1, 1000, 1, 1000};
  EXPECT_LT(grpo_advantages(sums, groups)[0], -0.8F);
  for (const float advantage : gdpo_advantages(rewards, {}, groups, lengths))
    EXPECT_NEAR(advantage, 0.0F, 0.05F);
  const std::vector<double> weights = {2.0, 1.0};
  const std::vector<float> weighed = gdpo_advantages(rewards, weights, groups, lengths);
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < 4; ++i)
    sum += weighed[i] * static_cast<double>(lengths[i]),
        squares += weighed[i] * weighed[i] * static_cast<double>(lengths[i]);
  EXPECT_NEAR(sum, 0.0, 1e-5);
  EXPECT_NEAR(squares / 9.0, 1.0, 1e-4);
  EXPECT_GT(weighed[0], 0.0F);
}

TEST(GroupAdvantage, GpgWeighsAFewSuccessesAsMuchAsMany) {
  const std::vector<float> scores = {1, 0, 0, 0, 0, 0};
  const std::vector<std::int64_t> groups = {1, 1, 1, 1, 2, 3};
  const std::vector<float> advantages = gpg_advantages(scores, groups);
  EXPECT_FLOAT_EQ(advantages[0], 0.75F * 6);
  EXPECT_FLOAT_EQ(advantages[1], -0.25F * 6);
  EXPECT_FLOAT_EQ(advantages[4], 0.0F);
  EXPECT_FLOAT_EQ(gpg_advantages(std::vector<float>{2, 1}, std::vector<std::int64_t>{1, 2})[0],
                  2.0F)
      << "a response alone keeps its score";
  EXPECT_FLOAT_EQ(gpg_advantages(std::vector<float>{0, 0}, std::vector<std::int64_t>{1, 1})[0],
                  0.0F);
}

TEST(GroupAdvantage, OpoWeighsTheBaselineByLength) {
  const std::vector<float> scores = {1, 0};
  const std::vector<std::int64_t> groups = {0, 0};
  const std::vector<std::int64_t> lengths = {30, 10};
  EXPECT_FLOAT_EQ(opo_advantages(scores, groups, lengths)[0], 0.25F);
}

TEST(GroupAdvantage, PassAtKCreditsOnlyTheBest) {
  const std::vector<float> scores = {0.2F, 0.9F, 0.4F};
  const std::vector<std::int64_t> groups = {0, 0, 0};
  const std::vector<float> advantages =
      grpo_passk_advantages(scores, groups, /*normalize_by_std=*/false);
  EXPECT_EQ(advantages[0], 0.0F);
  EXPECT_FLOAT_EQ(advantages[1], 0.5F);
  EXPECT_EQ(advantages[2], 0.0F);
}

TEST(GroupAdvantage, WhitenedAdvantagesHaveZeroMeanOverTokens) {
  const std::vector<float> scores = {1, 0, 0.5F, 0.25F};
  const std::vector<std::int64_t> groups = {0, 0, 1, 1};
  const std::vector<std::int64_t> lengths = {3, 5, 2, 9};
  const std::vector<float> advantages =
      reinforce_plus_plus_baseline_advantages(scores, groups, lengths);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    sum += lengths[i] * advantages[i];
    squares += lengths[i] * advantages[i] * advantages[i];
  }
  EXPECT_NEAR(sum, 0.0, 1e-5);
  EXPECT_NEAR(squares / 18.0, 1.0, 1e-4);
}

}  // namespace
}  // namespace rl
