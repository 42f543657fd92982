#include "rl/optim/sgd.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/rl/optim/fixed_numbers.h"

namespace rl {
namespace {

std::vector<float> three_sgd_steps(const SgdOptions& options) {
  kernel::ThreadPool pool(2);
  std::vector<float> weights = testing::fixed_numbers(6, 1);
  Sgd sgd(6, {{0, 6}}, options);
  for (int t = 0; t < 3; ++t)
    EXPECT_TRUE(sgd.step(pool, weights, testing::fixed_numbers(6, t + 2), 0.1F, 1.0F).ok());
  return weights;
}

void expect_float_near(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
}

// The numbers of torch.optim.SGD of PyTorch 2.15.
TEST(Sgd, StepsAsPyTorchDoes) {
  expect_float_near(three_sgd_steps({.momentum = 0.9F, .weight_decay = 0.05F}),
                    {-0.3770628, -0.7491834, 0.6786067, -0.5424497, 0.8853404, 0.2832198});
  expect_float_near(three_sgd_steps({.momentum = 0.9F, .nesterov = true, .weight_decay = 0.05F}),
                    {-0.5357255, -0.6816503, 0.7615106, -0.6005809, 0.8425799, 0.2596551});
}

TEST(Sgd, DecaysOnlyWhatIsAskedForAndScalesGradients) {
  kernel::ThreadPool pool(1);
  std::vector<float> weights(4, 1.0F);
  Sgd sgd(4, {{2, 4}}, {.weight_decay = 0.5F});
  ASSERT_TRUE(sgd.step(pool, weights, std::vector<float>(4, 2.0F), 0.1F, 0.25F).ok());
  expect_float_near(weights, {0.95, 0.95, 0.9, 0.9});
  EXPECT_TRUE(sgd.state().empty());  // without momentum nothing to remember
}

TEST(Sgd, ContinuesFromSavedState) {
  kernel::ThreadPool pool(1);
  std::vector<float> through = testing::fixed_numbers(6, 1);
  Sgd one(6, {}, {.momentum = 0.9F});
  ASSERT_TRUE(one.step(pool, through, testing::fixed_numbers(6, 2), 0.1F, 1.0F).ok());
  std::vector<float> resumed = through;
  Sgd two(6, {}, {.momentum = 0.9F});
  std::ranges::copy(one.state()[0].values, two.state()[0].values.begin());
  two.set_steps(one.steps());
  ASSERT_TRUE(one.step(pool, through, testing::fixed_numbers(6, 3), 0.1F, 1.0F).ok());
  ASSERT_TRUE(two.step(pool, resumed, testing::fixed_numbers(6, 3), 0.1F, 1.0F).ok());
  EXPECT_EQ(through, resumed);
}

}  // namespace
}  // namespace rl
