#include "rl/algo/token_advantage.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "rl/algo/masked.h"

namespace rl {
namespace {

at::Tensor rows(std::vector<float> values, std::int64_t columns) {
  return at::tensor(values).view({-1, columns});
}

// Two responses of 2 and 4 tokens, the score on the last.
const at::Tensor kMask = rows({1, 1, 0, 0, 1, 1, 1, 1}, 4);
const at::Tensor kRewards = rows({0, 1, 0, 0, 0, 0, 0, 1}, 4);
const at::Tensor kValues = rows({0.5, 0.2, 0, 0, 0.4, 0.3, 0.6, 0.1}, 4);

// VAPO's critic learns returns without bias whatever the policy's lambda is.
TEST(Gae, DecoupledReturnsAreThoseOfTheCriticsLambda) {
  const Advantages plain =
      gae(kRewards, kValues, kMask, {.gamma = 1.0, .lambda = 0.5, .whiten = false});
  const Advantages decoupled =
      gae(kRewards, kValues, kMask,
          {.gamma = 1.0, .lambda = 0.5, .whiten = false, .critic_lambda = 1.0});
  EXPECT_TRUE(decoupled.advantages_BT.equal(plain.advantages_BT));
  EXPECT_FALSE(decoupled.returns_BT.allclose(plain.returns_BT));
  EXPECT_TRUE(
      (decoupled.returns_BT * kMask).allclose(kMask));  // the score stands ahead of every token
}

TEST(Gae, LengthAdaptiveLambdaIsEachResponsesOwn) {
  const GaeOptions adaptive{
      .gamma = 1.0, .lambda = 1.0, .whiten = false, .critic_lambda = 1.0, .length_alpha = 1.0};
  const Advantages both = gae(kRewards, kValues, kMask, adaptive);
  // 1 - 1 / 2 and 1 - 1 / 4.
  const Advantages shorter =
      gae(kRewards, kValues, kMask, {.gamma = 1.0, .lambda = 0.5, .whiten = false});
  const Advantages longer =
      gae(kRewards, kValues, kMask, {.gamma = 1.0, .lambda = 0.75, .whiten = false});
  EXPECT_TRUE(both.advantages_BT[0].allclose(shorter.advantages_BT[0]));
  EXPECT_TRUE(both.advantages_BT[1].allclose(longer.advantages_BT[1]));
  EXPECT_FALSE(both.advantages_BT[1].allclose(shorter.advantages_BT[1]));
}

TEST(ReinforcePlusPlus, DiscountMakesEarlierTokensCountLess) {
  const at::Tensor returns = reinforce_plus_plus(kRewards, kMask, 0.5).returns_BT;
  EXPECT_TRUE(returns.allclose(rows({0.5, 1, 0, 0, 0.125, 0.25, 0.5, 1}, 4)));
}

TEST(Remax, TakesOffTheGreedyResponsesScoreAndWhitensNothing) {
  const Advantages out = remax(kRewards, at::tensor({0.75F, 1.0F}), kMask);
  EXPECT_TRUE(out.advantages_BT.allclose(rows({0.25, 0.25, 0, 0, 0, 0, 0, 0}, 4)));
}

}  // namespace
}  // namespace rl
