#include "rl/model/experts_pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "rl/model/pass_team.h"
#include "tests/rl/model/bound_layers.h"
#include "tests/rl/model/team_threads.h"

namespace rl {
namespace {

constexpr std::int64_t kExperts = 4;

bound::Mlp multiplies_by(double factor) {
  return {.in = testing::frozen_projection({at::eye(kExperts)}),
          .down = testing::frozen_projection({at::eye(kExperts) * factor})};
}

// Expert i multiplies rows of numbers that are not negative by i + 1, and the router reads its
// logits off the row.
bound::Experts counting_experts() {
  bound::Experts experts;
  experts.router = testing::frozen_linear(at::eye(kExperts));
  for (std::int64_t i = 0; i < kExperts; ++i)
    experts.experts.push_back(multiplies_by(static_cast<double>(i + 1)));
  return experts;
}

ModelConfig config_of_two_experts_a_row() {
  ModelConfig config;
  config.activation = kernel::Activation::kRelu;
  config.moe = MoeConfig{};
  config.moe->experts = kExperts;
  config.moe->experts_per_token = 2;
  return config;
}

at::Tensor row_of(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kFloat).unsqueeze(0);
}

class ExpertsPassTest : public ::testing::Test {
 protected:
  at::Tensor outputs(const at::Tensor& x) {
    const Projector project(pass_, std::nullopt, nullptr);
    return ExpertsPass(config_, pass_, project, nullptr)(weights_, x);
  }
  // By how much the row is multiplied.
  double factor(const at::Tensor& row) { return (outputs(row).sum() / row.sum()).item<double>(); }

  kernel::ThreadPool pool_{1};
  const PassContext pass_{pool_, {}};
  ModelConfig config_ = config_of_two_experts_a_row();
  bound::Experts weights_ = counting_experts();
};

TEST_F(ExpertsPassTest, ARowIsWhatItsExpertsGiveByTheirScores) {
  const at::Tensor x = at::cat(
      {row_of({0, 3, 2, 1}), row_of({4, 1, 0, 3}), row_of({2, 3, 1, 0}), row_of({0, 1, 2, 3})});
  const std::vector<std::pair<int, int>> chosen = {{1, 2}, {0, 3}, {0, 1}, {2, 3}};
  const at::Tensor scores = at::softmax(x, 1);
  std::vector<at::Tensor> expected;
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    const auto [a, b] = chosen[static_cast<std::size_t>(row)];
    expected.push_back(x[row] * (scores[row][a] * (a + 1) + scores[row][b] * (b + 1)));
  }
  EXPECT_TRUE(at::allclose(outputs(x), at::stack(expected), 1e-5, 1e-6));
}

TEST_F(ExpertsPassTest, NormalizedScoresAddUpToTheScaling) {
  config_.moe->normalized = true;
  config_.moe->scaling = 2.5;
  const at::Tensor x = row_of({0, 3, 2, 1});  // of experts 1 and 2 by exp(3) and exp(2)
  const double first = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(factor(x), 2.5 * (2 * first + 3 * (1 - first)), 1e-4);
}

TEST_F(ExpertsPassTest, ACorrectionChoosesAndDoesNotWeigh) {
  config_.moe->score = MoeConfig::Score::kSigmoid;
  weights_.correction = at::tensor({0.0, 0.0, 0.0, 5.0}, at::kFloat);
  const auto sigmoid = [](double logit) { return 1 / (1 + std::exp(-logit)); };
  EXPECT_NEAR(factor(row_of({3, 2, 1, 0})), sigmoid(3) * 1 + sigmoid(0) * 4, 1e-4);
}

// The best expert alone is in the first group, the better two are in the second.
TEST_F(ExpertsPassTest, AGroupIsAsGoodAsItsTwoBest) {
  config_.moe->normalized = true;
  const at::Tensor x = row_of({2, 0, 1.5, 1.5});
  EXPECT_LT(factor(x), 3.0);
  config_.moe->groups = 2;
  config_.moe->groups_per_token = 1;
  EXPECT_NEAR(factor(x), 3.5, 1e-4);
}

TEST_F(ExpertsPassTest, EveryRowHasTheSharedExpert) {
  const at::Tensor x = at::cat({row_of({0, 3, 2, 1}), row_of({4, 1, 0, 3})});
  const at::Tensor without = outputs(x);
  weights_.shared = multiplies_by(10.0);
  EXPECT_TRUE(at::allclose(outputs(x), without + 10 * x, 1e-5, 1e-5));
}

// The first rank has no row of experts 2 and 3, and the second none of expert 0.
TEST_F(ExpertsPassTest, RanksHaveTheBitsOfOne) {
  const at::Tensor x =
      at::cat({at::ones({64, 1}) * row_of({3, 2, 1, 0}), at::ones({66, 1}) * row_of({0, 2, 3, 1})});
  const at::Tensor whole = outputs(x);
  for (const PassCut cut : {PassCut::kRows, PassCut::kRowsAndExperts}) {
    testing::on_each_rank(2, cut, [&](const PassTeam& team) {
      const auto rows = ops::rows_of_ranks(x.size(0), team.size());
      kernel::ThreadPool pool(1);
      const PassContext pass{pool, {}, &team};
      const Projector project(pass, std::nullopt, rows);
      const ExpertsPass experts(config_, pass, project, rows);
      const at::Tensor own = experts(weights_, team.own_rows(x, *rows).contiguous());
      EXPECT_TRUE(own.equal(team.own_rows(whole, *rows))) << "rank " << team.rank();
    });
  }
}

}  // namespace
}  // namespace rl
