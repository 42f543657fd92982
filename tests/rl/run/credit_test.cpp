// Credit of samples: formulas, tokens, the KL in the reward, what is saved.
#include "rl/run/rl/credit_factory.h"

#include <tuple>

#include "rl/run/rl/codapo_credit.h"
#include "rl/run/rl/response_credit.h"
#include "rl/run/rl/token_credit.h"
#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

class CreditTest : public ::testing::Test {
 protected:
  // Two prompts of two samples, which score 0 and 1.
  StepBatch scored() {
    StepBatch batch = fake_batch(batches_, 2, 1, 2);
    EXPECT_TRUE(batch.take_scores(*reward_.score(batch.batches(), batch.tasks())).ok());
    return batch;
  }
  static TrainerOptions options(std::string_view estimator = "grpo") {
    TrainerOptions options;
    options.samples_per_prompt = 2;
    options.estimator = &advantage_estimator(estimator);
    return options;
  }
  CreditParts credit(const TrainerOptions& options) {
    return make_credit(options, {generate_, reward_, estimates_}, kDataRows);
  }

  static constexpr std::int64_t kDataRows = 1000;
  FakeBatches batches_;
  FakeGenerate generate_{batches_, 1, 2};
  FakeScore reward_{batches_};
  FakeEstimate estimates_;
  StepTimer timer_;
};

TEST_F(CreditTest, ComparesResponsesWithTheirGroup) {
  StepBatch batch = scored();
  const CreditParts parts = credit(options());
  const auto credit = parts.phase->assign(batch, 1, timer_);
  ASSERT_TRUE(credit.ok());
  EXPECT_FALSE(credit->per_token);
  const auto advantages = batch.all<float>(&Sample::advantage);
  EXPECT_LT(advantages[0], 0.0F);
  EXPECT_EQ(advantages[0], -advantages[1]);
  EXPECT_EQ(parts.group_size_min, 2);
  EXPECT_FALSE(parts.chosen_rows);
}

// Each response's KL is 1 a token here, and its coefficient 0.1.
TEST_F(CreditTest, TheKlInTheRewardTakesItsPartAndMovesItsCoefficient) {
  StepBatch batch = scored();
  batch.shares[0].reference.kl_penalties = {1, 2, 2, 3};
  TrainerOptions options = this->options();
  options.kl_in_reward = true;
  options.kl_control = {.coefficient = 0.1, .adaptive = true, .target = 0.1, .horizon = 100};
  const CreditParts parts = credit(options);
  const auto credit = parts.phase->assign(batch, 1, timer_);
  ASSERT_TRUE(credit.ok());
  EXPECT_DOUBLE_EQ(batch.all<double>(&Sample::reward)[1], 1.0 - 0.1 * 2);
  EXPECT_EQ(credit->metrics.at("actor/reward_kl_penalty"), 1.0);
  RewardState state;
  parts.phase->shaper().save(state);
  EXPECT_GT(state.kl_coefficient, 0.1);
  state.kl_coefficient = 0.5;
  parts.phase->shaper().restore(state);
  parts.phase->shaper().save(state);
  EXPECT_EQ(state.kl_coefficient, 0.5);
}

TEST_F(CreditTest, RewardsAreMeasuredAgainstEarlierSteps) {
  TrainerOptions options = this->options();
  options.reward_scaling.baseline = true;
  const CreditParts parts = credit(options);
  StepBatch batch = scored();
  ASSERT_TRUE(parts.phase->assign(batch, 1, timer_).ok());
  EXPECT_EQ(batch.all<double>(&Sample::reward)[1], 0.5);
  RewardState state;
  parts.phase->shaper().save(state);
  EXPECT_EQ(state.statistics.steps, 1);
}

TEST_F(CreditTest, EstimatesOfTokensAreWhitenedOverAllWorkers) {
  TrainerOptions options = this->options("reinforce_plus_plus");
  StepBatch batch = scored();
  const auto credit = this->credit(options).phase->assign(batch, 1, timer_);
  ASSERT_TRUE(credit.ok());
  EXPECT_TRUE(credit->per_token);
  EXPECT_EQ(credit->scaling.mean, 2.0);
  EXPECT_EQ(estimates_.tasks[0].scores, (std::vector<double>{0, 1, 0, 1}));
  EXPECT_TRUE(estimates_.tasks[0].baselines.empty());
  EXPECT_EQ(estimates_.tasks[0].micro_batches, (std::vector<MicroBatch>{{0, 3}, {3, 4}}));
}

TEST_F(CreditTest, ReMaxComparesWithGreedyResponses) {
  TrainerOptions options = this->options("remax");
  const CreditParts parts = credit(options);
  reward_.of = [](std::int64_t prompt, std::int64_t) {
    return prompt == 1 ? std::numeric_limits<double>::quiet_NaN() : 5.0;
  };
  StepBatch batch = fake_batch(batches_, 2, 1, 2);
  ASSERT_TRUE(parts.reader->compare(fake_prompts(2, 1).batches, batch, timer_).ok());
  EXPECT_EQ(batch.shares[0].groups[0].samples[1].baseline, 5.0);
  EXPECT_TRUE(batch.shares[0].groups[0].samples[1].is_scored);
  EXPECT_FALSE(batch.shares[0].groups[1].samples[0].is_scored);
}

TEST_F(CreditTest, ANumberThatTheRewardDoesNotGiveIsAnErrorThatSaysWhatItGives) {
  TrainerOptions options = this->options("gdpo");
  options.gdpo_keys = {"format"};
  const CreditParts parts = credit(options);
  reward_.extra = {"acc"};
  StepBatch batch = scored();
  EXPECT_EQ(parts.reader->read(batch).message(),
            "algorithm.gdpo_reward_keys: the reward gave no number 'format' for a sample; it gives "
            "acc");
  reward_.extra = {"acc", "format"};
  batch = scored();
  ASSERT_TRUE(parts.reader->read(batch).ok());
  EXPECT_EQ(batch.shares[0].groups[0].samples[1].components, std::vector<double>{11.0});
}

TEST_F(CreditTest, CodapoChoosesTheRowsOfTheNextStep) {
  TrainerOptions options = this->options("codapo");
  options.batch_prompts = 2;
  options.codapo.top_k = 1;
  const CreditParts parts = credit(options);
  StepBatch batch = scored();
  ASSERT_TRUE(parts.reader->read(batch).ok());  // the score stands in for the accuracy
  const auto first = parts.phase->assign(batch, 1, timer_);
  EXPECT_EQ(first->metrics.at("codapo/is_focused_step"), 0.0);
  EXPECT_EQ(parts.chosen_rows().size(), 2u);
  EXPECT_GE(parts.chosen_rows()[0], 100);
  const nlohmann::ordered_json state = parts.phase->assigner().save();
  EXPECT_EQ(state.at("focus"), nlohmann::ordered_json(parts.chosen_rows()));
  const auto second = parts.phase->assign(batch, 2, timer_);
  EXPECT_EQ(second->metrics.at("codapo/is_focused_step"), 1.0);
  EXPECT_TRUE(parts.chosen_rows().empty());
  ASSERT_TRUE(parts.phase->assigner().restore(state).ok()) << "rows of the data";
  EXPECT_EQ(parts.phase->assigner().save(), state);
}

TEST_F(CreditTest, WhatARunHasFollowsFromTheEstimatorsTraits) {
  for (const std::string& name : advantage_estimator_names()) {
    TrainerOptions options = this->options(name);
    options.critic_warmup = 3;
    const CreditParts parts = credit(options);
    EXPECT_EQ(dynamic_cast<GreedyBaseline*>(parts.reader.get()) != nullptr, name == "remax")
        << name;
    EXPECT_EQ(dynamic_cast<ScoreComponents*>(parts.reader.get()) != nullptr,
              name == "gdpo" || name == "codapo")
        << name;
    EXPECT_EQ(static_cast<bool>(parts.chosen_rows), name == "codapo") << name;
    EXPECT_EQ(parts.phase->assigner().save().empty(), name != "codapo") << name;
    EXPECT_EQ(parts.critic_warmup, name == "gae" ? 3 : 0) << name;
    const bool one_may_stay = name == "gae" || name == "reinforce_plus_plus" || name == "remax";
    EXPECT_EQ(parts.group_size_min, one_may_stay ? 1 : 2) << name;
  }
}

TEST_F(CreditTest, AGroupOfOneIsPointedOutWhereItsScoreIsItsAdvantage) {
  for (const auto& [estimator, samples, is_told] :
       {std::tuple("grpo", 1, true), std::tuple("grpo", 2, false), std::tuple("gae", 1, false)}) {
    TrainerOptions options = this->options(estimator);
    options.samples_per_prompt = samples;
    ::testing::internal::CaptureStderr();  // where the log goes
    credit(options);
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(told.find("rollout.n is 1") != std::string::npos, is_told) << estimator << samples;
  }
}

// Its advantages are the settings, and how many values of prompts there are.
class SettingsTeller : public ResponseEstimator {
 public:
  explicit SettingsTeller(bool revisits)
      : ResponseEstimator({.name = "test_settings",
                           .needs_components = !revisits,
                           .revisits_prompts = revisits}) {}
  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    EXPECT_EQ(responses.components, (std::vector<std::vector<float>>{{10, 11, 10, 11}}));
    return std::vector<float>{settings.normalize_by_std ? 1.0F : 0.0F,
                              static_cast<float>(settings.component_weights.front()),
                              static_cast<float>(settings.prompt_value_offset),
                              static_cast<float>(responses.prompt_values.size())};
  }
};

TEST_F(CreditTest, AnEstimatorGetsTheSettingsOfTheRun) {
  reward_.extra = {"acc"};
  for (const bool revisits : {false, true}) {
    const SettingsTeller estimator(revisits);
    TrainerOptions options = this->options();
    options.estimator = &estimator;
    options.gdpo_keys = {"acc"};
    options.gdpo_weights = {0.5};
    options.normalize_by_std = false;
    options.codapo.weight_offset = 0.25;
    const CreditParts parts = credit(options);
    StepBatch batch = scored();
    ASSERT_TRUE(parts.reader->read(batch).ok());
    ASSERT_TRUE(parts.phase->assign(batch, 1, timer_).ok());
    EXPECT_EQ(batch.all<float>(&Sample::advantage),
              (std::vector<float>{0.0F, 0.5F, 0.25F, revisits ? 4.0F : 0.0F}));
  }
}

TEST_F(CreditTest, TruncatedResponsesDoNotCountAndGoodOnesAreMarked) {
  StepBatch batch = scored();
  batch.shares[0].groups[0].samples[0].stopped = false;
  const auto uses = sample_uses(batch, {.mask_truncated = true, .positive_score = 1.0}, 1);
  EXPECT_EQ(uses[0].repeats, (std::vector<std::int32_t>{0, 1, 1, 1}));
  EXPECT_EQ(uses[0].positive, (std::vector<std::uint8_t>{0, 1, 0, 1}));
}

}  // namespace
}  // namespace rl
