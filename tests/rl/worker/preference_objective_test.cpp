#include "rl/worker/preference_objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "rl/config/key_table.h"

namespace rl {
namespace {

at::Tensor numbers(const std::vector<float>& values) { return at::tensor(values); }

double softplus(double x) { return std::log1p(std::exp(x)); }

// Two pairs; log-ratios of the first are 1 and -1, of the second -1 and 0.
PairInputs two_pairs() {
  return {.policy = {numbers({-2.0F, -4.0F}), numbers({-6.0F, -3.0F})},
          .reference = {numbers({-3.0F, -3.0F}), numbers({-5.0F, -3.0F})},
          .tokens = {numbers({2.0F, 4.0F}), numbers({3.0F, 1.0F})}};
}

TEST(PreferenceObjective, APairsMetricsAreMeansOverAllRows) {
  const PreferenceObjective objective{.beta = 0.5, .sft_weight = 0.1};
  Metrics metrics;
  const at::Tensor loss = pair_objective(objective, two_pairs(), {.rows = 4}, metrics);
  // The chosen one leads by 2 and by -1; means over its tokens are -1 and -1.
  const double expected = (softplus(-1.0) + softplus(0.5) + 0.1 * 2.0) / 4.0;
  EXPECT_NEAR(loss.item<double>(), expected, 1e-6);
  EXPECT_NEAR(metrics.at("loss"), expected, 1e-6);
  EXPECT_NEAR(metrics.at("nll_loss"), 2.0 / 4.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/chosen"), 0.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/rejected"), -0.5 / 4.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/margins"), 0.5 / 4.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/accuracies"), 1.0 / 4.0, 1e-6);
  EXPECT_NEAR(metrics.at("logps/chosen"), -6.0 / 4.0, 1e-6);
  EXPECT_NEAR(metrics.at("ref_logps/chosen"), -6.0 / 4.0, 1e-6);
  (void)pair_objective(objective, two_pairs(), {.rows = 4}, metrics);
  EXPECT_NEAR(metrics.at("loss"), 2.0 * expected, 1e-6) << "micro-batches add up";
}

TEST(PreferenceObjective, AveragedLogprobsAreOfTokensAndRewardsOfSums) {
  const PreferenceObjective objective{.beta = 0.5, .average_logprobs = true};
  Metrics metrics;
  const at::Tensor loss = pair_objective(objective, two_pairs(), {.rows = 2}, metrics);
  const double first = 1.0 / 2.0 + 1.0 / 3.0, second = -1.0 / 4.0;
  EXPECT_NEAR(loss.item<double>(), (softplus(-0.5 * first) + softplus(-0.5 * second)) / 2.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/margins"), 0.5 * (2.0 - 1.0) / 2.0, 1e-6);
}

TEST(PreferenceObjective, SinglesOfEachKindHaveTheirWeightAndTheirMeans) {
  const PreferenceObjective objective{
      .loss = PreferenceLossKind::kKto, .beta = 0.5, .wanted_weight = 2.0, .unwanted_weight = 3.0};
  const SingleInputs inputs{.policy_P = numbers({-2.0F, -6.0F, -4.0F}),
                            .reference_P = numbers({-4.0F, -6.0F, -8.0F}),
                            .wanted_P = numbers({1.0F, 1.0F, 0.0F}),
                            .divergence = 1.0};
  Metrics metrics;
  const at::Tensor loss = single_objective(objective, inputs, {.rows = 4, .wanted = 2}, metrics);
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  const double wanted = 2.0 * (1.0 - sigmoid(0.5)) + 2.0 * (1.0 - sigmoid(-0.5));
  const double unwanted = 3.0 * (1.0 - sigmoid(-1.5));
  EXPECT_NEAR(loss.item<double>(), (wanted + unwanted) / 4.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/chosen"), 0.5 * (2.0 + 0.0) / 2.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/rejected"), 0.5 * 4.0 / 2.0, 1e-6);
  EXPECT_NEAR(metrics.at("rewards/margins"), 0.5 - 1.0, 1e-6);
  EXPECT_NEAR(metrics.at("kl"), 3.0 / 4.0, 1e-6) << "of the rows that are here";
}

TEST(PreferenceObjective, ARewardModelLeadsByTheMarginAndStaysAroundZero) {
  const at::Tensor chosen = numbers({2.0F, -1.0F}), rejected = numbers({1.0F, 1.0F}),
                   margin = numbers({0.5F, 0.0F});
  PreferenceObjective objective{.loss = PreferenceLossKind::kBradleyTerry};
  Metrics plain, all;
  const at::Tensor without =
      reward_objective(objective, chosen, rejected, margin, {.rows = 2}, plain);
  EXPECT_NEAR(without.item<double>(), (softplus(-1.0) + softplus(2.0)) / 2.0, 1e-6);
  objective.use_margin = true;
  objective.center_coefficient = 0.1;
  const at::Tensor with = reward_objective(objective, chosen, rejected, margin, {.rows = 2}, all);
  EXPECT_NEAR(with.item<double>(), (softplus(-0.5) + softplus(2.0) + 0.1 * 9.0) / 2.0, 1e-6);
  EXPECT_NEAR(all.at("accuracy"), 0.5, 1e-6);
  EXPECT_NEAR(all.at("margin"), (1.0 - 2.0) / 2.0, 1e-6);
  EXPECT_NEAR(all.at("mean_reward"), 3.0 / 4.0, 1e-6);
}

TEST(PreferenceObjective, KeysThatChangeNothingAreRefused) {
  const auto complaint = [](std::vector<std::string> overrides) {
    const auto config = Config::load({std::nullopt, std::move(overrides), find_key_table("dpo")});
    return config.ok() ? PreferenceObjective::from_config(*config).status().message()
                       : config.status().message();
  };
  EXPECT_EQ(complaint({"preference.loss=simpo", "preference.label_smoothing=0.1"}), "");
  EXPECT_NE(complaint({"preference.loss=ipo", "preference.label_smoothing=0.1"})
                .find("preference.label_smoothing goes with"),
            std::string::npos);
  EXPECT_NE(complaint({"preference.loss=orpo", "preference.sft_weight=0.1"})
                .find("preference.sft_weight does not go with"),
            std::string::npos);
  EXPECT_NE(complaint({"preference.loss=simpo", "preference.average_logprobs=true"})
                .find("preference.average_logprobs is what"),
            std::string::npos);
}

}  // namespace
}  // namespace rl
