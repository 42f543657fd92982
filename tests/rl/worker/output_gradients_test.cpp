#include "rl/worker/output_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;

// Outputs that come from one weight: log-probs twice it, a head three times it, entropies from
// nowhere.
class OutputGradientsTest : public ::testing::Test {
 protected:
  OutputGradientsTest() {
    outputs_.logprobs.logprobs_N = weight_ * 2.0;
    outputs_.logprobs.entropy_N = at::ones({2});
    outputs_.heads = {weight_ * 3.0};
  }

  at::Tensor weight_ = at::ones({2}).requires_grad_(true);
  Outputs outputs_;
};

TEST_F(OutputGradientsTest, OnlyOutputsWithAGraphAreFound) {
  const std::vector<at::Tensor*> found = outputs_with_graph(outputs_);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], &outputs_.logprobs.logprobs_N);
  EXPECT_EQ(found[1], &outputs_.heads[0]);
}

TEST_F(OutputGradientsTest, TheLossIsCutOffAndItsGradientGoesBackLater) {
  const auto gradients = output_gradients(outputs_, [](const Outputs& own) -> Result<at::Tensor> {
    return (own.logprobs.logprobs_N * 5.0 + own.heads[0] * 7.0).sum();
  });
  ASSERT_TRUE(gradients.ok()) << gradients.status().to_string();
  ASSERT_EQ(gradients->size(), 2u);
  EXPECT_TRUE((*gradients)[0].equal(at::full({2}, 5.0F)));
  EXPECT_TRUE((*gradients)[1].equal(at::full({2}, 7.0F)));
  EXPECT_FALSE(weight_.grad().defined()) << "nothing has gone back yet";
  EXPECT_TRUE(backward_from(outputs_, *gradients));
  EXPECT_TRUE(weight_.grad().equal(at::full({2}, 2.0F * 5.0F + 3.0F * 7.0F)));
}

TEST_F(OutputGradientsTest, OutputsThatTheLossDoesNotReadHaveNoGradient) {
  const auto gradients = output_gradients(
      outputs_, [](const Outputs& own) -> Result<at::Tensor> { return own.heads[0].sum(); });
  ASSERT_TRUE(gradients.ok()) << gradients.status().to_string();
  ASSERT_EQ(gradients->size(), 2u);
  EXPECT_FALSE((*gradients)[0].defined());
  EXPECT_TRUE(backward_from(outputs_, *gradients));
  EXPECT_TRUE(weight_.grad().equal(at::full({2}, 3.0F)));
}

TEST_F(OutputGradientsTest, WhereNothingIsLearnedNothingGoesBack) {
  const auto none =
      output_gradients(outputs_, [](const Outputs&) -> Result<at::Tensor> { return at::Tensor(); });
  ASSERT_TRUE(none.ok()) << none.status().to_string();
  EXPECT_TRUE(none->empty());
  EXPECT_FALSE(backward_from(outputs_, *none));
  const auto failed = output_gradients(outputs_, [](const Outputs&) -> Result<at::Tensor> {
    return runtime::invalid_argument("no such loss");
  });
  support::expect_failure(failed.status(), ErrorCode::kInvalidArgument, {"no such loss"});
}

}  // namespace
}  // namespace rl
