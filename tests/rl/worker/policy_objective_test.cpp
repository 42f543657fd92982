#include "rl/worker/policy_objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rl/algo/custom_advantage.h"
#include "rl/algo/response_estimator.h"
#include "rl/run/rl/trainer_options.h"

namespace rl {
namespace {

constexpr std::int64_t kTokens = 5;

// Four responses of 5, 3, 5 and 2 tokens; the second and third were right.
struct Samples {
  at::Tensor logprobs_BT, old_BT, advantages_BT, mask_BT, positive_B, chosen_BT;
};

Samples samples() {
  std::vector<float> mask;
  for (const int length : {5, 3, 5, 2}) {
    for (int t = 0; t < kTokens; ++t) mask.push_back(t < length ? 1.0F : 0.0F);
  }
  std::vector<float> logprobs;
  std::vector<float> old;
  for (int i = 0; i < 4 * kTokens; ++i) {
    logprobs.push_back(-1.0F - 0.37F * static_cast<float>(i % 7));
    old.push_back(logprobs.back() + 0.5F * std::sin(static_cast<float>(3 * i)));
  }
  Samples s{at::tensor(logprobs).view({4, kTokens}), at::tensor(old).view({4, kTokens}),   {},
            at::tensor(mask).view({4, kTokens}),     at::tensor({0.0F, 1.0F, 1.0F, 0.0F}), {}};
  s.chosen_BT = at::zeros({4, kTokens});
  s.chosen_BT[0][1] = s.chosen_BT[2][3] = 1.0F;
  s.advantages_BT = at::tensor({1.0F, -0.5F, 2.0F, -1.5F}).unsqueeze(1) * s.mask_BT;
  return s;
}

struct Outcome {
  double loss = 0.0;
  at::Tensor gradient_BT;
  Metrics metrics;
};

// Rows [first, last) with the totals of all, or of `totals`.
Outcome run(const PolicyObjective& objective, const Samples& s, const at::Tensor& repeats_B,
            const MiniBatch& totals, std::int64_t first = 0, std::int64_t last = 4) {
  const auto rows = [&](const at::Tensor& all) { return all.slice(0, first, last); };
  const at::Tensor leaf = rows(s.logprobs_BT).clone().set_requires_grad(true);
  Outcome out;
  const auto loss = policy_objective(objective,
                                     {.logprobs_BT = leaf,
                                      .entropy_BT = leaf.square(),
                                      .old_logprobs_BT = rows(s.old_BT),
                                      .reference_BT = rows(s.old_BT) - 0.3,
                                      .advantages_BT = rows(s.advantages_BT),
                                      .mask_BT = rows(s.mask_BT),
                                      .chosen_BT = rows(s.chosen_BT),
                                      .repeats_B = rows(repeats_B),
                                      .positive_B = rows(s.positive_B)},
                                     totals, out.metrics);
  EXPECT_TRUE(loss.ok()) << loss.status().to_string();
  loss->backward();
  out.loss = loss->item<double>();
  out.gradient_BT = leaf.grad();
  return out;
}

const MiniBatch kTotals{0, 4, 15, 4, 8};

std::vector<PolicyObjective> objectives() {
  std::vector<PolicyObjective> all;
  for (const PolicyLossMode mode :
       {PolicyLossMode::kVanilla, PolicyLossMode::kGspo, PolicyLossMode::kCispo,
        PolicyLossMode::kGeoMean, PolicyLossMode::kClipCov, PolicyLossMode::kKlCov}) {
    for (const AggregationMode aggregation :
         {AggregationMode::kTokenMean, AggregationMode::kTokenSum,
          AggregationMode::kSeqMeanTokenSum, AggregationMode::kSeqMeanTokenSumNorm,
          AggregationMode::kSeqMeanTokenMean}) {
      PolicyObjective objective;
      objective.mode = mode;
      objective.clip = {.low = 0.1, .high = 0.3, .dual = 1.5};
      objective.aggregation = aggregation;
      objective.horizon = 8;
      objective.entropy_coefficient = 0.01;
      objective.use_kl_loss = true;
      objective.kl_coefficient = 0.1;
      objective.positive_nll_coefficient = 0.1;
      all.push_back(objective);
    }
  }
  return all;
}

TEST(PolicyObjective, HoweverABatchIsCutTheLossAndTheGradientAreThoseOfTheWhole) {
  const Samples s = samples();
  for (const PolicyObjective& objective : objectives()) {
    const Outcome whole = run(objective, s, at::ones({4}), kTotals);
    for (const std::vector<std::int64_t>& cuts :
         {std::vector<std::int64_t>{0, 1, 2, 3, 4}, {0, 3, 4}}) {
      double loss = 0.0;
      std::vector<at::Tensor> gradients;
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const Outcome part = run(objective, s, at::ones({4}), kTotals, cuts[i], cuts[i + 1]);
        loss += part.loss;
        gradients.push_back(part.gradient_BT);
      }
      EXPECT_NEAR(loss, whole.loss, 1e-6 * std::max(0.1, std::abs(whole.loss)))
          << static_cast<int>(objective.mode) << to_string(objective.aggregation);
      const double relative =
          ((at::cat(gradients) - whole.gradient_BT).norm() / whole.gradient_BT.norm())
              .item<double>();
      EXPECT_LE(relative, 1e-6) << static_cast<int>(objective.mode)
                                << to_string(objective.aggregation);
    }
  }
}

// What PF-PPO's draws and overlong filtering rest on.
TEST(PolicyObjective, ASampleThatCountsTwiceIsASampleThatStandsThereTwice) {
  const Samples s = samples();
  const at::Tensor order =
      at::tensor({0, 0, 2, 3}, at::kLong);  // the first twice, the second not at all
  const auto picked = [&](const at::Tensor& all) { return all.index_select(0, order); };
  const Samples doubled{picked(s.logprobs_BT), picked(s.old_BT),     picked(s.advantages_BT),
                        picked(s.mask_BT),     picked(s.positive_B), picked(s.chosen_BT)};
  const MiniBatch totals{0, 4, 17, 4, 5};
  for (const PolicyObjective& objective : objectives()) {
    const Outcome repeated = run(objective, s, at::tensor({2.0F, 0.0F, 1.0F, 1.0F}), totals);
    const Outcome written_out = run(objective, doubled, at::ones({4}), totals);
    EXPECT_NEAR(repeated.loss, written_out.loss, 1e-5 * std::abs(written_out.loss));
    EXPECT_TRUE(repeated.gradient_BT[1].equal(at::zeros({kTokens})));
    for (const auto& [name, value] : written_out.metrics)
      EXPECT_NEAR(repeated.metrics.at(name), value, 1e-5) << name;
  }
}

TEST(PolicyObjective, TheLossesDifferInWhatTheyHoldBack) {
  const Samples s = samples();
  const auto gradient = [&](PolicyLossMode mode) {
    PolicyObjective objective;
    objective.mode = mode;
    objective.clip = {.low = 0.1, .high = 0.1, .dual = 3.0};
    return run(objective, s, at::ones({4}), kTotals).gradient_BT;
  };
  const at::Tensor vanilla = gradient(PolicyLossMode::kVanilla);
  const at::Tensor inside = s.mask_BT > 0;
  EXPECT_GT(((vanilla == 0) * inside).sum().item<int>(), 0);  // clipped tokens teach nothing
  EXPECT_EQ(((gradient(PolicyLossMode::kCispo) == 0) * inside).sum().item<int>(), 0);  // CISPO's do
  const at::Tensor gspo = gradient(PolicyLossMode::kGspo);
  for (int row = 0; row < 4; ++row) {  // one ratio a sequence: all of its tokens, or none
    const at::Tensor tokens = gspo[row].masked_select(inside[row]);
    EXPECT_TRUE(tokens.allclose(tokens[0].expand_as(tokens))) << row;
  }
  EXPECT_FALSE(gradient(PolicyLossMode::kGeoMean).allclose(vanilla));
  // What Clip-Cov chose teaches nothing; what KL-Cov chose is pulled back, and nothing is clipped.
  const at::Tensor clip_cov = gradient(PolicyLossMode::kClipCov);
  EXPECT_EQ((clip_cov * s.chosen_BT).abs().sum().item<float>(), 0.0F);
  EXPECT_TRUE((clip_cov * (1 - s.chosen_BT))[0].allclose((vanilla * (1 - s.chosen_BT))[0]));
  EXPECT_EQ(((gradient(PolicyLossMode::kKlCov) == 0) * inside).sum().item<int>(), 0);
}

TEST(PolicyObjective, PositiveExamplesAreLearntByHeart) {
  const Samples s = samples();
  PolicyObjective objective;
  const at::Tensor without = run(objective, s, at::ones({4}), kTotals).gradient_BT;
  objective.positive_nll_coefficient = 0.5;
  const Outcome with = run(objective, s, at::ones({4}), kTotals);
  const at::Tensor added = with.gradient_BT - without;
  EXPECT_TRUE(added.allclose(-0.5 / 8.0 * s.mask_BT * s.positive_B.unsqueeze(1), 1e-5, 1e-7));
  EXPECT_GT(with.metrics.at("actor/positive_nll"), 0.0);
}

// A loss of a program's own: the clipped surrogate, `test_scale` times.
PolicyLoss scaled_surrogate(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                            const at::Tensor& advantages_BT, const at::Tensor&,
                            const PolicyLossOptions& options) {
  PolicyLoss out = clipped_surrogate(importance_ratio(logprobs_BT, old_logprobs_BT), advantages_BT,
                                     options.clip);
  out.loss_BT = out.loss_BT * options.numbers.at("test_scale");
  out.clipped_lower_BT = at::Tensor();
  return out;
}

Config config_of(std::vector<std::string> overrides) {
  overrides.push_back("actor_rollout_ref.model.path=/model");
  auto config = Config::load({.file = std::nullopt, .overrides = overrides});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return config.ok() ? *config : *Config::load({});
}

TEST(CustomPolicyLoss, IsChosenByItsNameAndStandsWhereTheOthersDo) {
  register_policy_loss("test_scaled", scaled_surrogate, {{"test_scale", 3.0}});
  const std::string section = "actor_rollout_ref.actor.policy_loss.";
  const auto vanilla = PolicyObjective::from_config(config_of({}));
  auto scaled = PolicyObjective::from_config(config_of({section + "loss_mode=test_scaled"}));
  auto set = PolicyObjective::from_config(
      config_of({section + "loss_mode=test_scaled", section + "test_scale=0.5"}));
  ASSERT_TRUE(scaled.ok()) << scaled.status().to_string();
  ASSERT_TRUE(set.ok()) << set.status().to_string();
  EXPECT_EQ(scaled->mode, PolicyLossMode::kCustom);
  const Samples s = samples();
  const Outcome plain = run(*vanilla, s, at::ones({4}), kTotals);
  for (const auto& [objective, scale] : {std::pair{&*scaled, 3.0}, std::pair{&*set, 0.5}}) {
    for (const AggregationMode aggregation :
         {AggregationMode::kTokenMean, AggregationMode::kSeqMeanTokenMean}) {
      PolicyObjective reference = *vanilla;
      reference.aggregation = objective->aggregation = aggregation;
      const Outcome expected = run(reference, s, at::ones({4}), kTotals);
      const Outcome own = run(*objective, s, at::ones({4}), kTotals);
      EXPECT_NEAR(own.loss, scale * expected.loss, 1e-5);
      EXPECT_TRUE(own.gradient_BT.allclose(scale * expected.gradient_BT, 1e-5, 1e-7));
      EXPECT_EQ(own.metrics.at("actor/pg_clipfrac"), expected.metrics.at("actor/pg_clipfrac"));
      EXPECT_EQ(own.metrics.at("actor/pg_clipfrac_lower"), 0.0);
    }
  }
  EXPECT_GT(plain.metrics.at("actor/pg_clipfrac"), 0.0);
  const auto wrong = PolicyObjective::from_config(
      config_of({section + "loss_mode=test_scaled", section + "test_scale=much"}));
  EXPECT_NE(wrong.status().message().find("test_scale"), std::string::npos);
}

TEST(CustomAdvantages, AreTheTrainersByTheirName) {
  const auto negated = [](std::span<const float> scores, Groups, std::span<const std::int64_t>) {
    std::vector<float> out;
    for (const float score : scores) out.push_back(-score);
    return out;
  };
  register_advantage_estimator("test_negated", negated);
  const Config config =
      config_of({"algorithm.adv_estimator=test_negated", "data.train_batch_size=4"});
  const auto options = TrainerOptions::from_config(config);
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->estimator->name(), "test_negated");
  ASSERT_NE(options->estimator->of_responses(), nullptr);
  const ScoredResponses responses{.rewards = {1.0F, 0.5F}, .groups = {0, 0}, .lengths = {3, 4}};
  EXPECT_EQ(*options->estimator->of_responses()->advantages(responses, {}),
            (std::vector<float>{-1.0F, -0.5F}));
}

}  // namespace
}  // namespace rl
