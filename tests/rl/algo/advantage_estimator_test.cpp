// The factory of advantage estimators: names, traits, and that each has its own formula.
#include "rl/algo/advantage_estimator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "rl/algo/estimator_codapo.h"
#include "rl/algo/estimator_token_baseline.h"
#include "rl/algo/group_advantage.h"
#include "rl/algo/response_estimator.h"
#include "rl/algo/token_estimator.h"
#include "rl/config/keys.h"

namespace rl {
namespace {

std::string joined(const std::vector<std::string>& names, std::string_view separator) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : separator).append(name);
  return text;
}

// Each once, whatever names it has.
std::set<const AdvantageEstimator*> all_estimators() {
  std::set<const AdvantageEstimator*> all;
  for (const std::string& name : advantage_estimator_names())
    all.insert(&advantage_estimator(name));
  return all;
}

// The names of those of which something holds.
std::string those(const std::function<bool(const EstimatorTraits&)>& holds) {
  std::set<std::string> names;
  for (const AdvantageEstimator* estimator : all_estimators()) {
    if (holds(estimator->traits())) names.insert(estimator->name());
  }
  return joined({names.begin(), names.end()}, " ");
}

TEST(AdvantageEstimator, TheFactoryHasTheNamesOfTheKeyAndNoNameTwice) {
  EXPECT_EQ(joined(advantage_estimator_names(), "|"), find_key("algorithm.adv_estimator")->allowed);
  std::set<std::string> names;
  for (const std::string& name : advantage_estimator_names()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    const auto parsed = parse_advantage_estimator(name);
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
    EXPECT_EQ(*parsed, &advantage_estimator(name));
    const bool is_other_name = name.ends_with("_vectorized");
    EXPECT_EQ((*parsed)->name(), is_other_name ? name.substr(0, name.rfind('_')) : name);
  }
}

TEST(AdvantageEstimator, AnotherNameIsRefusedWithTheList) {
  const runtime::Status status = parse_advantage_estimator("other").status();
  EXPECT_EQ(status.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(
      status.message().starts_with("advantage estimator \"other\" is none of codapo, disco, gae, "
                                   "gdpo, gpg, grpo, grpo_passk, grpo_vectorized, opo, "))
      << status.message();
  EXPECT_TRUE(
      status.message().ends_with("; register a custom one in main before run(), in workers too"))
      << status.message();
}

TEST(AdvantageEstimator, EachIsOfResponsesOrOfTokensAndItsTraitsFit) {
  for (const AdvantageEstimator* estimator : all_estimators()) {
    const EstimatorTraits& traits = estimator->traits();
    EXPECT_NE(estimator->of_responses() == nullptr, estimator->of_tokens() == nullptr)
        << traits.name;
    EXPECT_GE(traits.remainder_min, traits.group_size_min) << traits.name;
    if (traits.does_with_one) {
      EXPECT_EQ(traits.group_size_min, 1) << traits.name;
      EXPECT_EQ(traits.remainder_min, 2) << traits.name << ": one alone is of another scale";
    }
  }
}

TEST(AdvantageEstimator, TraitsSayWhatARunHasToHave) {
  EXPECT_EQ(those([](const auto& of) { return of.needs_critic; }), "gae");
  EXPECT_EQ(those([](const auto& of) { return of.needs_greedy_response; }), "remax");
  EXPECT_EQ(those([](const auto& of) { return of.needs_probabilities; }),
            "optimal_token_baseline tir_optimal_token_baseline");
  EXPECT_EQ(those([](const auto& of) { return of.compares_places; }), "optimal_token_baseline");
  EXPECT_EQ(those([](const auto& of) { return of.needs_components; }), "gdpo");
  EXPECT_EQ(those([](const auto& of) { return of.steps_per_batch() == 2; }), "codapo");
  EXPECT_EQ(those([](const auto& of) { return of.is_whitened; }), "gae reinforce_plus_plus");
  EXPECT_EQ(those([](const auto& of) { return of.does_with_one; }), "gdpo gpg grpo");
  EXPECT_EQ(those([](const auto& of) { return of.group_size_min == 2; }),
            "codapo disco grpo_passk opo optimal_token_baseline reinforce_plus_plus_baseline rloo "
            "tir_optimal_token_baseline");
  EXPECT_EQ(those([](const auto& of) { return of.remainder_min == 1; }),
            "gae reinforce_plus_plus remax");
}

// Rewards differ from scores, as they do where the KL is in them.
const ScoredResponses kResponses{.rewards = {0.9F, -0.1F, 0.4F, 0.7F},
                                 .scores = {1, 0, 0.5F, 1},
                                 .groups = {4, 4, 2, 2},
                                 .lengths = {1, 2, 3, 5},
                                 .components = {{1, 0, 0, 1}, {0.5F, 2, 1, 0}},
                                 .prompt_values = {0.5, 0.5, 0.25, 0.25}};

TEST(AdvantageEstimator, ThoseOfResponsesHaveTheirFormulas) {
  const auto& [rewards, scores, groups, lengths, components, values] = kResponses;
  for (const bool by_std : {true, false}) {
    const ResponseSettings settings{
        .normalize_by_std = by_std, .component_weights = {1.0, 0.5}, .prompt_value_offset = 0.2};
    const std::map<std::string, std::vector<float>> expected{
        {"codapo", codapo_advantages(rewards, values, groups, 0.2, by_std)},
        {"disco", disco_labels(scores)},
        {"gdpo", gdpo_advantages(components, settings.component_weights, groups, lengths, by_std)},
        {"gpg", gpg_advantages(rewards, groups)},
        {"grpo", grpo_advantages(rewards, groups, by_std)},
        {"grpo_passk", grpo_passk_advantages(rewards, groups, by_std)},
        {"opo", opo_advantages(rewards, groups, lengths)},
        {"reinforce_plus_plus_baseline",
         reinforce_plus_plus_baseline_advantages(rewards, groups, lengths)},
        {"rloo", rloo_advantages(rewards, groups)}};
    for (const AdvantageEstimator* estimator : all_estimators()) {
      const ResponseEstimator* of_responses = estimator->of_responses();
      if (of_responses == nullptr) continue;
      ASSERT_TRUE(expected.contains(estimator->name())) << estimator->name();
      EXPECT_EQ(*of_responses->advantages(kResponses, settings), expected.at(estimator->name()))
          << estimator->name();
    }
  }
}

// One response of three tokens, one of two.
RewardedTokens two_responses() {
  const auto rows = [](std::vector<float> values) { return at::tensor(values).view({2, 3}); };
  return {.rewards_BT = rows({0, 0.1F, 1, 0, 0.5F, 0}),
          .mask_BT = rows({1, 1, 1, 1, 1, 0}),
          .groups = {3, 3},
          .values_BT = rows({0.2F, 0.4F, 0.3F, 0.1F, 0.6F, 0}),
          .baselines_B = at::tensor({0.25F, 0.75F}),
          .logprobs_BT = rows({-0.5F, -1, -2, -0.1F, -3, 0}),
          .squares_BT = rows({0.4F, 0.3F, 0.2F, 0.8F, 0.1F, 0})};
}

TEST(AdvantageEstimator, ThoseOfTokensHaveTheirFormulas) {
  const RewardedTokens of = two_responses();
  const GaeOptions options{.gamma = 0.9, .lambda = 0.8, .whiten = false};
  const at::Tensor discounted = reinforce_plus_plus(of.rewards_BT, of.mask_BT, 0.9).returns_BT;
  const Advantages baseline =
      optimal_token_baseline(of.rewards_BT, of.logprobs_BT, of.squares_BT, of.mask_BT, of.groups);
  const std::map<std::string, Advantages> expected{
      {"gae", gae(of.rewards_BT, of.values_BT, of.mask_BT, options)},
      {"optimal_token_baseline", baseline},
      {"reinforce_plus_plus", {discounted, discounted}},  // whitened once all workers' are known
      {"remax", remax(of.rewards_BT, of.baselines_B, of.mask_BT)},
      {"tir_optimal_token_baseline", baseline}};
  for (const AdvantageEstimator* estimator : all_estimators()) {
    const TokenEstimator* of_tokens = estimator->of_tokens();
    if (of_tokens == nullptr) continue;
    ASSERT_TRUE(expected.contains(estimator->name())) << estimator->name();
    const Advantages actual = of_tokens->advantages(of, options);
    EXPECT_TRUE(actual.advantages_BT.equal(expected.at(estimator->name()).advantages_BT))
        << estimator->name();
    EXPECT_TRUE(actual.returns_BT.equal(expected.at(estimator->name()).returns_BT))
        << estimator->name();
  }
}

class ResponsesWithACritic : public ResponseEstimator {
 public:
  ResponsesWithACritic() : ResponseEstimator({.name = "test_critic", .needs_critic = true}) {}
  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings&) const override {
    return responses.rewards;
  }
};

TEST(AdvantageEstimatorDeathTest, WhatTokensHaveIsNotForResponses) {
  EXPECT_DEATH(ResponsesWithACritic(), "needs_critic");
  EXPECT_DEATH(advantage_estimator("other"), "is none of codapo");
}

}  // namespace
}  // namespace rl
