#include "rl/algo/distillation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

// Two tokens with probabilities 3/4 and 1/4, or one half each.
const double kThird = std::log(3.0);
at::Tensor teacher() { return at::tensor({kThird, 0.0}).to(at::kFloat).view({1, 2}); }
at::Tensor student() { return at::zeros({1, 2}); }

TEST(Distillation, ByHand) {
  const double kl = 0.75 * std::log(0.75 / 0.5) + 0.25 * std::log(0.25 / 0.5);
  EXPECT_NEAR(distillation_kl(student(), teacher(), {}).item<double>(), kl, 1e-6);
  EXPECT_NEAR(distillation_kl(teacher(), teacher(), {}).item<double>(), 0.0, 1e-7);
  // It is the teacher's expectation: the other way round is another number.
  const double reverse = 0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25);
  EXPECT_NEAR(distillation_kl(teacher(), student(), {}).item<double>(), reverse, 1e-6);
}

TEST(Distillation, TheTemperatureSoftensAndItsSquareScales) {
  // exp(ln 3 / 2) = sqrt 3
  const double p = std::sqrt(3.0) / (std::sqrt(3.0) + 1.0);
  const double kl = 4.0 * (p * std::log(p / 0.5) + (1 - p) * std::log((1 - p) / 0.5));
  EXPECT_NEAR(distillation_kl(student(), teacher(), {.temperature = 2.0}).item<double>(), kl, 1e-6);
}

TEST(Distillation, TheGradientIsTheDifferenceOfTheDistributions) {
  for (const double temperature : {1.0, 3.0}) {
    const at::Tensor logits = at::randn({4, 7});
    const at::Tensor target = at::randn({4, 7});
    at::Tensor leaf = logits.clone().requires_grad_();
    distillation_kl(leaf, target, {.temperature = temperature}).sum().backward();
    const at::Tensor expected =
        (at::softmax(logits / temperature, 1) - at::softmax(target / temperature, 1)) * temperature;
    EXPECT_LT((leaf.grad() - expected).abs().max().item<double>(), 1e-5) << temperature;
  }
}

TEST(Distillation, TopKTakesAllOtherTokensAsOne) {
  // Teacher 1/2, 1/4, 1/8, 1/8; student uniform: with k = 1 the events have 1/2, 1/2 and 1/4, 3/4.
  const at::Tensor four =
      at::tensor({std::log(4.0), std::log(2.0), 0.0, 0.0}).to(at::kFloat).view({1, 4});
  const at::Tensor uniform = at::zeros({1, 4});
  EXPECT_NEAR(distillation_kl(uniform, four, {.top_k = 1}).item<double>(),
              0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3.0), 1e-6);
  double before = 0.0;
  for (const std::int64_t k : {1, 2, 3, 4}) {
    const double kl = distillation_kl(uniform, four, {.top_k = k}).item<double>();
    EXPECT_GE(kl, before - 1e-6) << k;
    before = kl;
  }
  EXPECT_NEAR(before, distillation_kl(uniform, four, {}).item<double>(), 1e-6);
  // Nothing pulls at the student where the events are as likely as the teacher's, however the
  // others are shared out.
  at::Tensor leaf =
      at::tensor({std::log(3.0), 0.0, 0.0, 0.0}).to(at::kFloat).view({1, 4}).requires_grad_();
  distillation_kl(leaf, four, {.top_k = 1}).sum().backward();
  EXPECT_LT(leaf.grad().abs().max().item<double>(), 1e-6);
}

TEST(Distillation, ATokenThatTheTeacherRulesOutCostsNothing) {
  const at::Tensor hard = at::tensor({0.0, -1e30}).to(at::kFloat).view({1, 2});
  EXPECT_NEAR(distillation_kl(student(), hard, {}).item<double>(), std::log(2.0), 1e-6);
  EXPECT_TRUE(std::isfinite(distillation_kl(student(), hard, {.top_k = 1}).item<double>()));
}

TEST(Distillation, TheWeightSharesOut) {
  const at::Tensor loss = distillation_loss(at::tensor({2.0}), at::tensor({1.0}), {.weight = 0.25});
  EXPECT_NEAR(loss.item<double>(), 0.75 * 2.0 + 0.25 * 1.0, 1e-6);
}

}  // namespace
}  // namespace rl
