// A custom loss by itself. Its place in the objective is in policy_objective_test.cpp.
#include "rl/algo/custom_policy_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;

// What such a function is given: two responses of three tokens.
using Given = const at::Tensor&;
using LossOptions = const PolicyLossOptions&;

class CustomPolicyLossTest : public ::testing::Test {
 protected:
  runtime::Result<PolicyLoss> loss(PolicyLossFunction function, PolicyLossNumbers numbers = {}) {
    return CustomPolicyLoss{"test_loss", std::move(function), std::move(numbers)}.loss(
        logprobs_BT_, old_BT_, at::ones({2, 3}), at::ones({2, 3}), {.low = 0.3, .dual = {}});
  }
  void expect_refused(PolicyLossFunction function, ErrorCode code, const std::string& part) {
    support::expect_failure(loss(std::move(function)).status(), code,
                            {"policy loss \"test_loss\": ", part});
  }

  at::Tensor old_BT_ = -at::ones({2, 3});
  at::Tensor logprobs_BT_ = (-at::ones({2, 3})).set_requires_grad(true);
};

TEST_F(CustomPolicyLossTest, HasItsNumbersAndWhatItLeavesOutIsNothing) {
  const auto found = loss(
      [](Given logprobs, Given, Given, Given, LossOptions options) {
        return PolicyLoss{
            logprobs * options.numbers.at("scale") * options.clip.low, logprobs > -2.0, {}};
      },
      {{"scale", 10.0}});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_TRUE(found->loss_BT.allclose(logprobs_BT_ * 3.0));
  EXPECT_TRUE(found->clipped_BT.equal(at::ones({2, 3}))) << "as numbers, of which means are taken";
  EXPECT_TRUE(found->clipped_lower_BT.equal(at::ones({2, 3}) * 0.0));
}

TEST_F(CustomPolicyLossTest, WhatIsWrongWithItIsToldWithItsName) {
  expect_refused([](Given, Given, Given, Given, LossOptions) { return PolicyLoss{}; },
                 ErrorCode::kInvalidArgument, "it gives no loss_BT");
  expect_refused(
      [](Given logprobs, Given, Given, Given, LossOptions) {
        return PolicyLoss{logprobs.sum(1), {}, {}};
      },
      ErrorCode::kInvalidArgument, "another shape");
  expect_refused(
      [](Given logprobs, Given, Given, Given, LossOptions) {
        return PolicyLoss{logprobs * 1.0, logprobs.sum(1), {}};
      },
      ErrorCode::kInvalidArgument, "another shape");
  expect_refused(
      [](Given, Given old, Given, Given, LossOptions) {
        return PolicyLoss{-old, {}, {}};
      },
      ErrorCode::kInvalidArgument, "does not depend on logprobs_BT");
}

// Where nothing is learned, nothing has to depend on anything.
TEST_F(CustomPolicyLossTest, WithoutAGradientAConstantIsALoss) {
  logprobs_BT_ = -at::ones({2, 3});
  EXPECT_TRUE(loss([](Given, Given old, Given, Given, LossOptions) {
                return PolicyLoss{-old, {}, {}};
              }).ok());
}

TEST_F(CustomPolicyLossTest, WhatItThrowsIsAFailure) {
  const auto thrown = loss([](Given, Given, Given, Given, LossOptions) -> PolicyLoss {
    throw std::runtime_error("no such thing\nbacktrace");
  });
  EXPECT_EQ(thrown.status(), runtime::task_failed("policy loss \"test_loss\": no such thing"));
  expect_refused([](Given, Given, Given, Given, LossOptions) -> PolicyLoss { throw 1; },
                 ErrorCode::kTaskFailed, "it threw something that is not a std::exception");
  expect_refused(
      [](Given logprobs, Given, Given, Given, LossOptions options) {
        return PolicyLoss{logprobs * options.numbers.at("missing"), {}, {}};
      },
      ErrorCode::kTaskFailed, "");
}

TEST(CustomPolicyLossDeathTest, NamesAreTakenOnce) {
  const PolicyLossFunction loss = [](Given logprobs, Given, Given, Given, LossOptions) {
    return PolicyLoss{logprobs, {}, {}};
  };
  EXPECT_EQ(find_policy_loss("test_twice"), nullptr);
  EXPECT_DEATH(register_policy_loss("vanilla", loss), "takes \"vanilla\" already");
  EXPECT_DEATH(register_policy_loss("no name", loss), "is not a name");
  EXPECT_DEATH(register_policy_loss("test_tau", loss, {{"tau", 1.0}}), "is a key already");
  EXPECT_DEATH(register_policy_loss("test_none", nullptr), "[Cc]heck failed");
  register_policy_loss("test_twice", loss, {{"test_twice_width", 2.0}});
  ASSERT_NE(find_policy_loss("test_twice"), nullptr);
  EXPECT_EQ(find_policy_loss("test_twice")->numbers.at("test_twice_width"), 2.0);
  EXPECT_DEATH(register_policy_loss("test_twice", loss), "takes \"test_twice\" already");
}

}  // namespace
}  // namespace rl
