#include "rl/worker/distillation_objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "rl/worker/policy_objective.h"

namespace rl {
namespace {

// Two responses, of two tokens and of one.
struct DistillationSamples {
  at::Tensor logprobs_BT = at::tensor({-1.0F, -2.0F, -0.5F, 0.0F}).view({2, 2});
  at::Tensor old_BT = at::tensor({-1.0F, -2.0F, -0.5F, 0.0F}).view({2, 2});
  at::Tensor teacher_BT = at::tensor({-3.0F, -1.0F, -0.25F, 0.0F}).view({2, 2});
  at::Tensor advantages_BT = at::tensor({1.0F, 1.0F, -1.0F, 0.0F}).view({2, 2});
  at::Tensor mask_BT = at::tensor({1.0F, 1.0F, 1.0F, 0.0F}).view({2, 2});
};

const MiniBatch kTwoSamples{0, 2, 3, 2, 0};

struct DistillationOutcome {
  double loss = 0.0;
  at::Tensor gradient_BT;
  Metrics metrics;

  double gradient(std::int64_t i) const { return gradient_BT.view({-1})[i].item<double>(); }
};

DistillationOutcome run_distillation(const PolicyObjective& objective, const DistillationSamples& s,
                                     std::int64_t first = 0, std::int64_t last = 2) {
  const auto rows = [&](const at::Tensor& all) { return all.slice(0, first, last); };
  const at::Tensor leaf = rows(s.logprobs_BT).clone().set_requires_grad(true);
  DistillationOutcome out;
  const auto loss = policy_objective(objective,
                                     {.logprobs_BT = leaf,
                                      .entropy_BT = leaf.square(),
                                      .old_logprobs_BT = rows(s.old_BT),
                                      .reference_BT = {},
                                      .advantages_BT = rows(s.advantages_BT),
                                      .mask_BT = rows(s.mask_BT),
                                      .chosen_BT = {},
                                      .repeats_B = at::ones({last - first}),
                                      .positive_B = at::zeros({last - first}),
                                      .teacher_BT = rows(s.teacher_BT)},
                                     kTwoSamples, out.metrics);
  EXPECT_TRUE(loss.ok()) << loss.status().to_string();
  loss->backward();
  out.loss = loss->item<double>();
  out.gradient_BT = leaf.grad();
  return out;
}

PolicyObjective taught(KlEstimator estimator, bool policy_gradient) {
  PolicyObjective objective;
  objective.distillation =
      DistillationObjective{.estimator = {.estimator = estimator, .straight_through = false},
                            .loss_max = {},
                            .policy_gradient = policy_gradient,
                            .task_rewards = false};
  return objective;
}

// log(pi / teacher) is 2, -1 and -0.25.
TEST(DistillationObjective, WithThePolicyGradientMinusTheEstimateIsTheAdvantage) {
  const DistillationOutcome out = run_distillation(taught(KlEstimator::kK1, true), {});
  EXPECT_NEAR(out.loss, 0.75 / 3, 1e-6);  // ratios are 1
  EXPECT_NEAR(out.gradient(0), 2.0 / 3, 1e-6);
  EXPECT_NEAR(out.gradient(1), -1.0 / 3, 1e-6);
  EXPECT_NEAR(out.gradient(2), -0.25 / 3, 1e-6);
  EXPECT_EQ(out.gradient(3), 0.0);
  EXPECT_NEAR(out.metrics.at("distillation/kl"), 0.75 / 3, 1e-6);
  EXPECT_NEAR(out.metrics.at("distillation/abs_loss"), 3.25 / 3, 1e-6);
  EXPECT_NEAR(out.metrics.at("distillation/loss"), out.loss, 1e-9);
  EXPECT_EQ(out.metrics.count("actor/pg_loss"), 0u) << "rewards are not learned from";
}

TEST(DistillationObjective, TheEstimateIsGoneBackThroughWithoutThePolicyGradient) {
  const DistillationOutcome k2 = run_distillation(taught(KlEstimator::kK2, false), {});
  EXPECT_NEAR(k2.loss, 0.5 * (4.0 + 1.0 + 0.0625) / 3, 1e-6);
  EXPECT_NEAR(k2.gradient(0), 2.0 / 3, 1e-6);
  EXPECT_NEAR(k2.gradient(1), -1.0 / 3, 1e-6);
  const DistillationOutcome k3 = run_distillation(taught(KlEstimator::kK3, false), {});
  EXPECT_NEAR(k3.gradient(0), (1 - std::exp(-2.0)) / 3, 1e-6);
  EXPECT_NEAR(k3.gradient(1), (1 - std::exp(1.0)) / 3, 1e-6);
  EXPECT_NEAR(run_distillation(taught(KlEstimator::kAbs, false), {}).gradient(1), -1.0 / 3, 1e-6);
}

TEST(DistillationObjective, OneTokensLossIsBoundedOnBothSides) {
  PolicyObjective objective = taught(KlEstimator::kK1, true);
  objective.distillation->loss_max = 0.5;
  const DistillationOutcome out = run_distillation(objective, {});
  EXPECT_NEAR(out.gradient(0), 0.5 / 3, 1e-6);
  EXPECT_NEAR(out.gradient(1), -0.5 / 3, 1e-6);
  EXPECT_NEAR(out.gradient(2), -0.25 / 3, 1e-6);
  EXPECT_NEAR(out.metrics.at("distillation/abs_loss"), 3.25 / 3, 1e-6) << "before the bound";
  PolicyObjective direct = taught(KlEstimator::kK2, false);
  direct.distillation->loss_max = 1.0;
  EXPECT_EQ(run_distillation(direct, {}).gradient(0), 0.0) << "beyond the bound nothing is learned";
}

// The clip ratios are the teacher's own, and the dual clip is 3.
TEST(DistillationObjective, RatiosThatLeftTheirBoundsAreClipped) {
  DistillationSamples s;
  s.old_BT = s.logprobs_BT -
             at::tensor({2.0F, 0.5F, -0.5F, 0.0F}).view({2, 2});  // ratios e^2, e^0.5, e^-0.5
  PolicyObjective objective = taught(KlEstimator::kK1, true);
  objective.clip = {.low = 0.9, .high = 9.0, .dual = 100.0};
  const DistillationOutcome out = run_distillation(objective, s);
  EXPECT_EQ(out.gradient(0), 0.0) << "at a negative advantage the loss is at most three times it";
  EXPECT_EQ(out.gradient(1), 0.0) << "a positive one stops at 1.2";
  EXPECT_NEAR(out.gradient(2), -0.25 * std::exp(-0.5) / 3, 1e-6);
  EXPECT_NEAR(out.loss, (2.0 * 3.0 - 1.2 - 0.25 * std::exp(-0.5)) / 3, 1e-5);
  EXPECT_NEAR(out.metrics.at("distillation/pg_clipfrac"), 1.0 / 3, 1e-6);
  EXPECT_NEAR(out.metrics.at("distillation/pg_clipfrac_lower"), 1.0 / 3, 1e-6);
}

TEST(DistillationObjective, WithRewardsItIsAddedWithItsCoefficient) {
  const PolicyObjective alone = taught(KlEstimator::kK3, false);
  PolicyObjective both = alone;
  both.distillation->task_rewards = true;
  both.distillation->coefficient = 0.25;
  PolicyObjective rewards = both;
  rewards.distillation.reset();
  const DistillationOutcome sum = run_distillation(both, {});
  EXPECT_NEAR(sum.loss,
              run_distillation(rewards, {}).loss + 0.25 * run_distillation(alone, {}).loss, 1e-6);
  EXPECT_TRUE(sum.gradient_BT.allclose(run_distillation(rewards, {}).gradient_BT +
                                       run_distillation(alone, {}).gradient_BT * 0.25));
  EXPECT_EQ(sum.metrics.count("actor/pg_loss"), 1u);
}

TEST(DistillationObjective, HoweverABatchIsCutTheGradientIsThatOfTheWhole) {
  for (const AggregationMode aggregation :
       {AggregationMode::kTokenMean, AggregationMode::kSeqMeanTokenMean,
        AggregationMode::kSeqMeanTokenSumNorm}) {
    PolicyObjective objective = taught(KlEstimator::kK1, true);
    objective.aggregation = aggregation;
    objective.horizon = 4;
    const DistillationOutcome whole = run_distillation(objective, {});
    const DistillationOutcome first = run_distillation(objective, {}, 0, 1);
    const DistillationOutcome second = run_distillation(objective, {}, 1, 2);
    EXPECT_TRUE(at::cat({first.gradient_BT, second.gradient_BT}).allclose(whole.gradient_BT));
    for (const auto& [name, value] : whole.metrics)
      EXPECT_NEAR(first.metrics.at(name) + second.metrics.at(name), value, 1e-6) << name;
  }
}

std::string refusal(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), "distillation.enabled=true");
  const auto config = Config::load({std::nullopt, overrides});
  if (!config.ok()) return config.status().message();
  const auto objective = DistillationObjective::from_config(*config);
  return objective.ok() ? "" : objective.status().message();
}

TEST(DistillationObjective, WhatMakesNoSenseIsRefusedByItsKey) {
  const std::string loss = "distillation.distillation_loss.";
  EXPECT_EQ(refusal({loss + "loss_mode=k3"}), "");
  EXPECT_EQ(refusal({loss + "loss_mode=k1", loss + "use_policy_gradient=true",
                     loss + "use_task_rewards=false"}),
            "");
  for (const char* mode : {"k1", "kl"}) {
    EXPECT_NE(refusal({loss + "loss_mode=" + mode})
                  .find("does not depend on the teacher; set use_policy_gradient=true"),
              std::string::npos);
  }
  EXPECT_NE(refusal({loss + "loss_mode=forward_kl_topk"}).find("not of its most likely ones"),
            std::string::npos);
  EXPECT_NE(refusal({loss + "loss_max_clamp=0"}).find("loss_max_clamp"), std::string::npos);
  EXPECT_NE(refusal({loss + "clip_ratio=1.5"}).find("clip_ratio_low"), std::string::npos);
  EXPECT_NE(refusal({loss + "distillation_loss_coef=-1"}).find("distillation_loss_coef"),
            std::string::npos);
  for (const char* unused : {"use_kl_loss=true", "entropy_coeff=0.01", "positive_nll_coef=0.1"}) {
    EXPECT_EQ(refusal({std::string("actor_rollout_ref.actor.") + unused}), "") << unused;
    EXPECT_NE(
        refusal({std::string("actor_rollout_ref.actor.") + unused, loss + "use_task_rewards=false"})
            .find("the teacher is all that is learned from"),
        std::string::npos)
        << unused;
  }
}

TEST(DistillationObjective, TheDefaultsAreVerls) {
  const auto config = Config::load({std::nullopt, {"distillation.enabled=true"}});
  ASSERT_TRUE(config.ok());
  const auto objective = DistillationObjective::from_config(*config);
  ASSERT_TRUE(objective.ok());
  EXPECT_EQ((*objective)->estimator.estimator, KlEstimator::kK3);
  EXPECT_FALSE((*objective)->policy_gradient);
  EXPECT_TRUE((*objective)->task_rewards);
  EXPECT_FALSE((*objective)->loss_max);
  EXPECT_EQ((*objective)->clip.low, 0.2);
  EXPECT_EQ((*objective)->coefficient, 1.0);
  const auto off = Config::load({std::nullopt, {}});
  ASSERT_TRUE(off.ok());
  EXPECT_FALSE(DistillationObjective::from_config(*off)->has_value());
}

}  // namespace
}  // namespace rl
