// Cases outside the reference numbers: limits, micro-batches, padding.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rl/algo/aggregate.h"
#include "rl/algo/kl.h"
#include "rl/algo/masked.h"
#include "rl/algo/policy_loss.h"
#include "rl/algo/token_advantage.h"

namespace rl {
namespace {

constexpr AggregationMode kModes[] = {
    AggregationMode::kTokenMean, AggregationMode::kTokenSum, AggregationMode::kSeqMeanTokenSum,
    AggregationMode::kSeqMeanTokenSumNorm, AggregationMode::kSeqMeanTokenMean};

TEST(Aggregate, MicroBatchesWithGlobalDenominatorsAddUpToTheWhole) {
  const std::vector<std::int64_t> lengths = {3, 7, 1, 5};
  const at::Tensor loss_BT = at::randn({4, 7});
  const at::Tensor mask_BT = length_mask(lengths);
  for (const AggregationMode mode : kModes) {
    Aggregation aggregation;
    aggregation.mode = mode;
    const double whole = aggregate(loss_BT, mask_BT, aggregation).item<double>();
    aggregation.tokens = 16;
    aggregation.sequences = 4;
    aggregation.horizon = 7;
    const double parts =
        aggregate(loss_BT.narrow(0, 0, 1), mask_BT.narrow(0, 0, 1), aggregation).item<double>() +
        aggregate(loss_BT.narrow(0, 1, 3), mask_BT.narrow(0, 1, 3), aggregation).item<double>();
    EXPECT_NEAR(parts, whole, 1e-5 * std::max(1.0, std::abs(whole))) << to_string(mode);
  }
}

TEST(Aggregate, IgnoresNanOutsideTheMaskAndEmptyBatches) {
  at::Tensor loss_BT = at::ones({2, 3});
  loss_BT[0][2] = NAN;
  const at::Tensor mask_BT = length_mask(std::vector<std::int64_t>{2, 3});
  for (const AggregationMode mode : kModes) {
    Aggregation aggregation;
    aggregation.mode = mode;
    EXPECT_TRUE(std::isfinite(aggregate(loss_BT, mask_BT, aggregation).item<double>()))
        << to_string(mode);
    EXPECT_EQ(aggregate(loss_BT, at::zeros({2, 3}), aggregation).item<double>(), 0.0)
        << to_string(mode);
  }
}

TEST(Aggregate, ModeNamesGoBothWays) {
  for (const AggregationMode mode : kModes)
    EXPECT_EQ(parse_aggregation_mode(to_string(mode)).value(), mode);
  const auto unknown = parse_aggregation_mode("token_mean");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("seq-mean-token-sum-norm"), std::string::npos);
}

TEST(Masked, PadRowsIsDifferentiable) {
  const std::vector<std::int64_t> lengths = {2, 3};
  at::Tensor packed_N = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F});
  packed_N.set_requires_grad(true);
  const at::Tensor padded_BT = pad_rows(packed_N, lengths);
  EXPECT_EQ(padded_BT.sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(padded_BT[0][2].item<float>(), 0.0F);
  EXPECT_EQ(padded_BT[1][2].item<float>(), 5.0F);
  (padded_BT * at::tensor({1.0F, 2.0F, 3.0F})).sum().backward();
  EXPECT_EQ(packed_N.grad()[1].item<float>(), 2.0F);
  EXPECT_EQ(packed_N.grad()[4].item<float>(), 3.0F);
}

TEST(Masked, WhitenOfOneTokenTakesOnlyTheMeanOff) {
  const at::Tensor out =
      masked_whiten(at::full({1, 2}, 5.0), at::tensor({1.0F, 0.0F}).view({1, 2}));
  EXPECT_EQ(out[0][0].item<float>(), 0.0F);
}

TEST(PolicyLoss, ClippedTokensHaveNoGradient) {
  at::Tensor logprobs_BT = at::zeros({1, 3});
  logprobs_BT.set_requires_grad(true);
  const at::Tensor old_BT = at::tensor({0.0F, -1.0F, 1.0F}).view({1, 3});  // ratios 1, e, 1/e
  const at::Tensor advantages_BT = at::tensor({1.0F, 1.0F, -1.0F}).view({1, 3});
  const PolicyLoss out =
      clipped_surrogate(importance_ratio(logprobs_BT, old_BT), advantages_BT, {});
  out.loss_BT.sum().backward();
  EXPECT_FLOAT_EQ(logprobs_BT.grad()[0][0].item<float>(), -1.0F);
  EXPECT_EQ(logprobs_BT.grad()[0][1].item<float>(), 0.0F);
  EXPECT_EQ(logprobs_BT.grad()[0][2].item<float>(), 0.0F);
  EXPECT_EQ(out.clipped_BT.sum().item<float>(), 2.0F);
}

TEST(PolicyLoss, DualClipBoundsTheLossAtNegativeAdvantage) {
  const at::Tensor ratio_BT = at::full({1, 1}, 50.0);
  const at::Tensor advantage_BT = at::full({1, 1}, -2.0);
  EXPECT_FLOAT_EQ(clipped_surrogate(ratio_BT, advantage_BT, {}).loss_BT.item<float>(), 100.0F);
  const PolicyLoss bounded =
      clipped_surrogate(ratio_BT, advantage_BT, {.low = 0.2, .high = 0.2, .dual = 3.0});
  EXPECT_FLOAT_EQ(bounded.loss_BT.item<float>(), 6.0F);
  EXPECT_EQ(bounded.clipped_lower_BT.item<float>(), 1.0F);
}

TEST(PolicyLoss, RatioStaysFinite) {
  const at::Tensor ratio = importance_ratio(at::full({1, 1}, 500.0), at::full({1, 1}, -500.0));
  EXPECT_TRUE(std::isfinite(ratio.item<float>()));
}

TEST(PolicyLoss, SequenceRatioPassesEachTokensGradient) {
  at::Tensor logprobs_BT = at::tensor({0.2F, 0.4F}).view({1, 2});
  logprobs_BT.set_requires_grad(true);
  const at::Tensor mask_BT = at::ones({1, 2});
  const at::Tensor ratio_BT = sequence_importance_ratio(logprobs_BT, at::zeros({1, 2}), mask_BT);
  EXPECT_NEAR(ratio_BT[0][0].item<double>(), std::exp(0.3), 1e-6);
  EXPECT_NEAR(ratio_BT[0][1].item<double>(), std::exp(0.3), 1e-6);
  ratio_BT[0][0].backward();
  EXPECT_NEAR(logprobs_BT.grad()[0][0].item<double>(), std::exp(0.3), 1e-6);
  EXPECT_EQ(logprobs_BT.grad()[0][1].item<double>(), 0.0);
}

TEST(Kl, StraightThroughHasTheValueOfOneAndTheGradientOfK2) {
  at::Tensor logprobs = at::tensor({-1.0F});
  logprobs.set_requires_grad(true);
  const at::Tensor reference = at::tensor({-1.5F});
  const at::Tensor kl = kl_penalty(logprobs, reference, parse_kl_penalty("k1+").value());
  EXPECT_FLOAT_EQ(kl.item<float>(), 0.5F);
  kl.sum().backward();
  EXPECT_FLOAT_EQ(logprobs.grad().item<float>(), 0.5F);  // k1's own would be 1
}

TEST(Kl, UnknownNameIsRefused) { EXPECT_FALSE(parse_kl_penalty("k4").ok()); }

TEST(PolicyGradient, IsTheLogprobTimesTheAdvantageWhateverTheRatio) {
  at::Tensor logprobs_BT = at::tensor({-0.5F, -9.0F}).view({1, 2});
  logprobs_BT.set_requires_grad(true);
  const PolicyLoss out = policy_gradient_loss(logprobs_BT, at::tensor({2.0F, -1.0F}).view({1, 2}));
  out.loss_BT.sum().backward();
  EXPECT_FLOAT_EQ(out.loss_BT[0][0].item<float>(), 1.0F);
  EXPECT_FLOAT_EQ(out.loss_BT[0][1].item<float>(), -9.0F);
  EXPECT_FLOAT_EQ(logprobs_BT.grad()[0][0].item<float>(), -2.0F);
  EXPECT_FLOAT_EQ(logprobs_BT.grad()[0][1].item<float>(), 1.0F)
      << "far from the old policy as well";
  EXPECT_EQ(out.clipped_BT.sum().item<float>(), 0.0F);
}

TEST(TokenAdvantage, GaeSkipsTokensOutsideTheMask) {
  const at::Tensor mask_BT = at::tensor({1.0F, 0.0F, 1.0F}).view({1, 3});
  at::Tensor rewards_BT = at::tensor({0.0F, NAN, 1.0F}).view({1, 3});
  at::Tensor values_BT = at::tensor({0.5F, NAN, 0.25F}).view({1, 3});
  const Advantages out = gae(rewards_BT, values_BT, mask_BT, {.gamma = 1.0, .lambda = 1.0});
  EXPECT_FLOAT_EQ(out.returns_BT[0][0].item<float>(), 1.0F);
  EXPECT_FLOAT_EQ(out.returns_BT[0][2].item<float>(), 1.0F);
  EXPECT_TRUE(std::isfinite(out.advantages_BT[0][0].item<float>()));
}

}  // namespace
}  // namespace rl
