// Preference losses that the reference file has no numbers of: values and gradients worked out in
// double precision from the papers' equations.
#include "rl/algo/preference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rl {
namespace {

at::Tensor leaf(std::vector<float> values) { return at::tensor(values).set_requires_grad(true); }

void expect_near(const at::Tensor& actual, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(actual.numel(), std::ssize(expected)) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[static_cast<std::int64_t>(i)].item<double>(), expected[i],
                1e-5 * std::max(1.0, std::abs(expected[i])))
        << what << " " << i;
  }
}

TEST(Preference, LabelSmoothingPullsTheLossUp) {
  const PairLogprobs policy{at::tensor({-1.0F}), at::tensor({-9.0F})};
  const PairLogprobs reference{at::tensor({-5.0F}), at::tensor({-5.0F})};
  DpoOptions options;
  const float plain = dpo_loss(policy, reference, options).loss_P.item<float>();
  options.label_smoothing = 0.1;
  EXPECT_GT(dpo_loss(policy, reference, options).loss_P.item<float>(), plain);
}

TEST(Preference, OrpoIsTheLikelihoodLessTheOddsRatio) {
  const PairLogprobs mean{leaf({-0.5F, -1.25F, -0.01F}), leaf({-0.75F, -0.9F, -3.0F})};
  const at::Tensor loss_P = orpo_loss(mean, 0.25);
  loss_P.sum().backward();
  expect_near(loss_P, {0.6144781833, 1.4988843421, 0.0101316117}, "loss");
  expect_near(mean.chosen_P.grad(), {-1.2334345294, -1.2209107983, -1.0132236071}, "chosen");
  expect_near(mean.rejected_P.grad(), {0.1740779148, 0.2656062301, 0.0001384712}, "rejected");
}

TEST(Preference, OrpoOfACertainTokenIsFinite) {
  const PairLogprobs mean{leaf({0.0F}), leaf({-80.0F})};
  const at::Tensor loss_P = orpo_loss(mean, 0.25);
  loss_P.sum().backward();
  EXPECT_TRUE(std::isfinite(loss_P.item<float>()));
  EXPECT_TRUE(std::isfinite(mean.chosen_P.grad().item<float>()));
  EXPECT_TRUE(std::isfinite(mean.rejected_P.grad().item<float>()));
}

TEST(Preference, SimpoWantsALeadOfGamma) {
  const PairLogprobs mean{leaf({-0.5F, -1.25F, -0.01F}), leaf({-0.75F, -0.9F, -3.0F})};
  const at::Tensor loss_P = simpo_loss(mean, {.beta = 2.0, .gamma = 0.5});
  loss_P.sum().backward();
  expect_near(loss_P, {0.6931471806, 1.4632824673, 0.0041606621}, "loss");
  expect_near(mean.chosen_P.grad(), {-1.0, -1.5370495670, -0.0083040371}, "chosen");
  expect_near(mean.rejected_P.grad(), {1.0, 1.5370495670, 0.0083040371}, "rejected");
}

TEST(Preference, SppoDrawsEachRatioToItsOwnPlace) {
  const PairLogprobs policy{leaf({-5, -12, -9}), leaf({-6, -10, -20})};
  const PairLogprobs reference{at::tensor({-5.5F, -11.0F, -10.0F}),
                               at::tensor({-6.25F, -10.5F, -18.0F})};
  const PreferenceLoss out = dpo_loss(policy, reference, {.beta = 0.1, .loss = DpoLoss::kSppo});
  out.loss_P.sum().backward();
  expect_near(out.loss_P, {47.8125, 66.25, 25.0}, "loss");
  expect_near(policy.chosen_P.grad(), {-9.0, -12.0, -8.0}, "chosen");
  expect_near(policy.rejected_P.grad(), {10.5, 11.0, 6.0}, "rejected");
}

TEST(Preference, EachPairMayHaveAMarginOfItsOwn) {
  const at::Tensor chosen_P = at::tensor({1.0F, 2.0F});
  const at::Tensor rejected_P = at::tensor({0.5F, 2.5F});
  const at::Tensor loss_P = bradley_terry_loss(chosen_P, rejected_P, at::tensor({0.0F, 1.0F}));
  EXPECT_FLOAT_EQ(loss_P[0].item<float>(),
                  bradley_terry_loss(chosen_P, rejected_P)[0].item<float>());
  EXPECT_FLOAT_EQ(loss_P[1].item<float>(),
                  bradley_terry_loss(chosen_P, rejected_P, 1.0)[1].item<float>());
}

}  // namespace
}  // namespace rl
