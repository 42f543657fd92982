#include "rl/algo/disco_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

// Two responses of 2 tokens and 1 token.
const at::Tensor kThreeTokens = at::tensor({1.0F, 1.0F, 1.0F, 0.0F}).view({2, 2});
const at::Tensor kOld = at::tensor({-1.0F, -2.0F, -1.5F, 0.0F}).view({2, 2});
const at::Tensor kWeights = at::tensor({-0.5F, 0.25F});

at::Tensor now() {
  return at::tensor({-1.0F, -2.5F, -1.0F, 0.0F}).view({2, 2}).set_requires_grad(true);
}

TEST(DiscoLoss, MovesMeanLogProbsByTheirWeights) {
  const at::Tensor logprobs = now();
  const at::Tensor loss =
      disco_loss(logprobs, kOld, kThreeTokens, kWeights, /*by_ratio=*/false, 0.0, 3.0);
  EXPECT_NEAR(loss.item<double>(), -0.5 * -1.75 + 0.25 * -1.0, 1e-6);
  loss.backward();
  EXPECT_TRUE(logprobs.grad().allclose(at::tensor({-0.25F, -0.25F, 0.25F, 0.0F}).view({2, 2})));
}

TEST(DiscoLoss, OrMeanRatios) {
  const at::Tensor logprobs = now();
  const at::Tensor loss =
      disco_loss(logprobs, kOld, kThreeTokens, kWeights, /*by_ratio=*/true, 0.0, 3.0);
  EXPECT_NEAR(loss.item<double>(), -0.5 * (1.0 + std::exp(-0.5)) / 2 + 0.25 * std::exp(0.5), 1e-6);
  loss.backward();
  EXPECT_NEAR(logprobs.grad()[0][1].item<double>(), -0.25 * std::exp(-0.5), 1e-6);
  EXPECT_NEAR(logprobs.grad()[1][0].item<double>(), 0.25 * std::exp(0.5), 1e-6);
}

TEST(DiscoLoss, TheKlIsAMeanOverTheMiniBatchsTokens) {
  const at::Tensor logprobs = now();
  const at::Tensor loss =
      disco_loss(logprobs, kOld, kThreeTokens, kWeights * 0, /*by_ratio=*/false, 6.0, 3.0);
  EXPECT_NEAR(loss.item<double>(), 2.0 * (std::exp(-0.5) - 1 + 0.5 + std::exp(0.5) - 1 - 0.5),
              1e-6);
  loss.backward();
  EXPECT_NEAR(logprobs.grad()[0][1].item<double>(), 2.0 * (std::exp(-0.5) - 1), 1e-6);
  EXPECT_EQ(logprobs.grad()[0][0].item<double>(), 0.0);
}

}  // namespace
}  // namespace rl
