// Differences of SAPO, DPPO, DRO and weighted REINFORCE from the clipped surrogate, and from each
// other.
#include "rl/algo/gated_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace rl {
namespace {

at::Tensor row(const std::vector<float>& values) { return at::tensor(values).unsqueeze(0); }

std::vector<float> numbers(const at::Tensor& values) {
  const at::Tensor flat = values.detach().contiguous().view({-1});
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

// The loss's gradient by each token's log-prob.
std::vector<float> gradients(const std::vector<float>& logprobs,
                             const std::function<PolicyLoss(const at::Tensor&)>& loss) {
  at::Tensor logprobs_BT = row(logprobs).requires_grad_(true);
  loss(logprobs_BT).loss_BT.sum().backward();
  return numbers(logprobs_BT.grad());
}

void expect_close(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

const std::vector<float> kOldLogprobs = {-1.0F, -1.0F, -1.0F};
const std::vector<float> kAdvantages = {2.0F, -1.0F, 0.5F};

TEST(SapoLoss, IsThePolicyGradientAtTheOldPolicyAndFadesOnBothSides) {
  const auto loss = [](const at::Tensor& logprobs) {
    return sapo_loss(logprobs, row(kOldLogprobs), row(kAdvantages), {});
  };
  expect_close(gradients(kOldLogprobs, loss), {-2.0F, 1.0F, -0.5F});
  const float far =
      std::log(3.0F) - 1.0F;  // ratio 3: the gate's slope is 4 s (1 - s), s = sigmoid(2 tau)
  const std::vector<float> faded = gradients({far, far, far}, loss);
  const auto slope = [](double tau) {
    const double s = 1.0 / (1.0 + std::exp(-2.0 * tau));
    return static_cast<float>(4.0 * s * (1.0 - s) * 3.0);
  };
  expect_close(faded, {-2.0F * slope(1.0), slope(1.05), -0.5F * slope(1.0)});
}

TEST(DppoLoss, LetsGoOfTokensThatLeftInTheDirectionTheyArePushed) {
  // Probabilities: before 0.5 each; now 0.7, 0.3 and 0.7.
  const std::vector<float> old(3, std::log(0.5F));
  const std::vector<float> now = {std::log(0.7F), std::log(0.3F), std::log(0.7F)};
  const at::Tensor advantages = row({1.0F, -1.0F, -1.0F});
  const ClipOptions narrow{.low = 0.1, .high = 0.1, .dual = {}};
  const auto tv = [&](const at::Tensor& logprobs) {
    return dppo_loss(logprobs, row(old), advantages, TokenDivergence::kTotalVariation, narrow);
  };
  expect_close(
      gradients(now, tv),
      {0.0F, 0.0F, 1.4F});  // the third went up although it is pushed down: it may come back
  EXPECT_EQ(numbers(tv(row(now)).clipped_BT), (std::vector<float>{1, 1, 0}));
  const ClipOptions wide{.low = 0.3, .high = 0.3, .dual = 1.2};
  const auto capped = [&](const at::Tensor& logprobs) {
    return dppo_loss(logprobs, row(old), advantages, TokenDivergence::kTotalVariation, wide);
  };
  expect_close(gradients(now, capped), {-1.2F, 0.6F, 1.2F});
  EXPECT_EQ(numbers(capped(row(now)).clipped_lower_BT), (std::vector<float>{1, 0, 1}));
}

TEST(DppoLoss, KlTellsRareTokensFromCommonOnes) {
  // Both move by 0.05: a common token within the bound, a rare one far beyond it. Total variation
  // sees no difference.
  const std::vector<float> old = {std::log(0.5F), std::log(0.001F)};
  const std::vector<float> now = {std::log(0.55F), std::log(0.051F)};
  const ClipOptions clip{.low = 0.02, .high = 0.02, .dual = {}};
  EXPECT_EQ(
      numbers(dppo_loss(row(now), row(old), row({1, 1}), TokenDivergence::kKl, clip).clipped_BT),
      (std::vector<float>{0, 1}));
  EXPECT_EQ(numbers(dppo_loss(row(now), row(old), row({1, 1}), TokenDivergence::kTotalVariation,
                              {.low = 0.06, .high = 0.06, .dual = {}})
                        .clipped_BT),
            (std::vector<float>{0, 0}));
}

TEST(DroLoss, PullsBackInProportionToTheDistance) {
  const auto loss = [](const at::Tensor& logprobs) {
    return dro_loss(logprobs, row(kOldLogprobs), row(kAdvantages), 0.5);
  };
  expect_close(gradients(kOldLogprobs, loss), {-2.0F, 1.0F, -0.5F});
  expect_close(gradients({0.0F, -2.0F, -1.0F}, loss), {-2.0F + 0.5F, 1.0F - 0.5F, -0.5F});
}

TEST(WeightedPolicyGradient, WeighsByTokenOrBySequence) {
  const std::vector<float> now = {-1.0F + std::log(3.0F), -1.0F - std::log(2.0F), -5.0F};
  const at::Tensor mask = row({1, 1, 0});
  const auto weights = [&](const ImportanceWeightOptions& how) {
    return numbers(importance_weights(row(now), row(kOldLogprobs), mask, how) * mask);
  };
  expect_close(weights({.by_sequence = false, .upper = 2.0, .lower = {}}), {2.0F, 0.5F, 0.0F});
  expect_close(weights({.by_sequence = true, .upper = 2.0, .lower = {}}),
               {1.5F, 1.5F, 0.0F});  // what stands outside the mask does not count
  expect_close(weights({.by_sequence = false, .upper = 2.0, .lower = 0.4}),
               {0.0F, 0.5F, 0.0F});  // IcePop
  const auto loss = [&](const at::Tensor& logprobs) {
    return weighted_policy_gradient_loss(logprobs, row(kOldLogprobs), row(kAdvantages), mask,
                                         ImportanceWeightOptions{});
  };
  const std::vector<float> weighed = gradients(now, loss);
  expect_close({weighed[0], weighed[1]}, {-4.0F, 0.5F});
  EXPECT_EQ(numbers(loss(row(now)).clipped_BT * mask), (std::vector<float>{1, 0, 0}));
}

TEST(ImportanceBounds, AreANumberOrTwo) {
  EXPECT_EQ(parse_importance_bounds("3")->upper, 3.0);
  EXPECT_EQ(parse_importance_bounds("0.5_5.0")->lower, 0.5);
  for (const char* wrong : {"", "x", "-1", "0", "2_1", "1_", "_2", "1_2_3"})
    EXPECT_FALSE(parse_importance_bounds(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace rl
