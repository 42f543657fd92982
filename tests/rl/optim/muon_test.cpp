#include "rl/optim/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/optim/matrix_exchange.h"
#include "tests/rl/optim/fixed_numbers.h"

namespace rl {
namespace {

// A matrix of 4 x 3 at 16, and nothing else that moves.
void take_three_steps(bool match_adamw, std::vector<float>& moved) {
  kernel::ThreadPool pool(1);
  const auto alone = make_single_communicator();
  std::vector<float> weights(32, 0.0F);
  const std::vector<float> matrix = testing::fixed_numbers(12, 1);
  std::copy(matrix.begin(), matrix.end(), weights.begin() + 16);
  Muon muon(MatrixExchange(*alone, 32, {{16, 4, 3}}, {}), {},
            {.match_adamw = match_adamw, .weight_decay = 0.05F}, {});
  for (int t = 0; t < 3; ++t) {
    std::vector<float> gradients(32, 0.0F);
    const std::vector<float> g = testing::fixed_numbers(12, t + 2);
    std::copy(g.begin(), g.end(), gradients.begin() + 16);
    ASSERT_TRUE(muon.step(pool, weights, gradients, 0.1F, 1.0F).ok());
  }
  moved.assign(weights.begin() + 16, weights.begin() + 28);
}

std::vector<float> three_steps(bool match_adamw) {
  std::vector<float> moved;
  take_three_steps(match_adamw, moved);
  return moved;
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

// torch.optim.Muon of PyTorch 2.15 iterates in bfloat16, and so agrees to two or three digits; its
// formulas written out in fp32 agree to six.
TEST(Muon, StepsAsPyTorchDoes) {
  const std::vector<float> matched = three_steps(true);
  expect_near(matched,
              {-0.07305, -0.85954, 0.52835, -0.42093, 0.96843, 0.12146, -0.77194, 0.61558, -0.32893,
               1.06902, 0.27573, -0.66645},
              3e-3);
  expect_near(matched,
              {-0.0731011, -0.8598284, 0.5292606, -0.4215604, 0.9683801, 0.1202896, -0.7718088,
               0.6166219, -0.3287432, 1.0693498, 0.276922, -0.6670301},
              2e-5);
  expect_near(three_steps(false),
              {-0.21088, -0.80855, 0.59593, -0.47169, 0.93703, 0.16475, -0.74152, 0.66188, -0.39197,
               1.04155, 0.42425, -0.62286},
              9e-3);  // steps three times as large
}

// What is no matrix moves as with AdamW, and its moments are kept next to the momentum.
TEST(Muon, TheRestIsAdamWs) {
  kernel::ThreadPool pool(1);
  const auto alone = make_single_communicator();
  std::vector<float> mine = testing::fixed_numbers(32, 3);
  std::vector<float> theirs = mine;
  Muon muon(MatrixExchange(*alone, 32, {{16, 4, 4}}, {}), {{0, 16}}, {}, {});
  AdamW adam(32, {{0, 16}}, {});
  for (int t = 0; t < 2; ++t) {
    ASSERT_TRUE(muon.step(pool, mine, testing::fixed_numbers(32, t), 1e-2F, 0.5F).ok());
    ASSERT_TRUE(adam.step(pool, theirs, testing::fixed_numbers(32, t), 1e-2F, 0.5F).ok());
  }
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(mine[i], theirs[i]) << i;
  EXPECT_NE(mine[20], theirs[20]);
  EXPECT_EQ(muon.steps(), 2);
}

}  // namespace
}  // namespace rl
