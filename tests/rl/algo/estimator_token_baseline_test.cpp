#include "rl/algo/estimator_token_baseline.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rl {
namespace {

at::Tensor rows_of_four(std::vector<float> values) { return at::tensor(values).view({-1, 4}); }

// Three responses to one prompt, of 3, 2 and 4 tokens; one each to two others.
const std::vector<std::int64_t> kPromptOfRow{0, 0, 1, 0, 2};
const at::Tensor kResponseMask =
    rows_of_four({1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
const at::Tensor kTokenRewards =
    rows_of_four({0, 0, 1, 0, 0, 0.25, 0, 0, 0, 0, 0, 2, 0, 0, 0, -1, 0, 0.5, 0, 0});
const at::Tensor kSquares = rows_of_four(
    {.4F, .3F, .7F, 0, .4F, .2F, 0, 0, .85F, .5F, .4F, .6F, .3F, .35F, .5F, .5F, .2F, .25F, 0, 0});

at::Tensor logprobs() {
  return rows_of_four({.5F, .25F, .8F, 1,   .5F, .125F, 1,   1,   .9F, .6F,
                       .3F, .7F,  .2F, .4F, .6F, .5F,   .3F, .3F, 1,   1})
      .log();
}

// verl 0.9.1's numbers for the same tensors. The first is (0.4 + 0.25 * 0.4 - 0.9) / 1.7 away from
// 1. There the weights 1 - 2 p + sum p^2 of the three first tokens are 0.4, 0.4 and 0.9.
TEST(OptimalTokenBaseline, IsTheGroupsReturnWeightedByTheGradientsSize) {
  const Advantages out =
      optimal_token_baseline(kTokenRewards, logprobs(), kSquares, kResponseMask, kPromptOfRow);
  const at::Tensor expected = rows_of_four(
      {1.2352941F, 0.9781250F,  1.1475410F,  0,           0.4852941F, 0.2281250F, 0,    0, 2, 2, 2,
       2,          -0.7647059F, -1.0218750F, -0.8524590F, -1,         0.5F,       0.5F, 0, 0});
  EXPECT_TRUE(out.advantages_BT.allclose(expected, 1e-5, 1e-6)) << out.advantages_BT;
  EXPECT_NEAR(out.advantages_BT[0][0].item<double>(), 1.0 - (0.4 + 0.25 * 0.4 - 0.9) / 1.7, 1e-6);
  EXPECT_TRUE((out.returns_BT * kResponseMask).equal(rows_of_four({1,  1,  1,   0,   .25F, .25F, 0,
                                                                   0,  2,  2,   2,   2,    -1,   -1,
                                                                   -1, -1, .5F, .5F, 0,    0})));
}

// Places at which a tool spoke count for none; verl's numbers.
TEST(OptimalTokenBaseline, SkipsWhatIsNotLearned) {
  const at::Tensor mask =
      rows_of_four({1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0});
  const at::Tensor rewards =
      rows_of_four({0, 0, 0, 1, 0, 0.25, 0, 0, 0, 0, 0, 2, 0, 0, 0, -1, 0, 0.5, 0, 0});
  at::Tensor squares = kSquares.clone();
  at::Tensor logs = logprobs();
  logs[0][3] = std::log(1e-3F);
  const Advantages out = optimal_token_baseline(rewards, logs, squares, mask, kPromptOfRow);
  const at::Tensor expected =
      rows_of_four({1.2352941F, 0, 1,           1, 0.4852941F, 0,           0,    0,    2, 2,
                    2,          2, -0.7647059F, 0, 0,          -1.0338163F, 0.5F, 0.5F, 0, 0});
  EXPECT_TRUE(out.advantages_BT.allclose(expected, 1e-5, 1e-6)) << out.advantages_BT;
}

TEST(OptimalTokenBaseline, OfEqualReturnsNothingIsLeftWhereTwoAreCompared) {
  const Advantages out = optimal_token_baseline(
      rows_of_four({0, 0, 1, 0, 0, 1, 0, 0}), logprobs().slice(0, 0, 2), kSquares.slice(0, 0, 2),
      kResponseMask.slice(0, 0, 2), std::vector<std::int64_t>{4, 4});
  EXPECT_TRUE(out.advantages_BT.allclose(rows_of_four({0, 0, 1, 0, 0, 0, 0, 0}), 1e-5, 1e-6))
      << out.advantages_BT;  // the third token has nothing next to it
}

}  // namespace
}  // namespace rl
