// A whole step of reinforcement learning over fake groups.
#include "rl/run/rl/rl_stage.h"

#include <filesystem>
#include <utility>

#include "rl/run/rl/credit_factory.h"
#include "rl/run/rl/generated_now.h"
#include "rl/run/rl/scored_source.h"
#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

class NoEstimates : public EstimateCalls {
 public:
  std::vector<PassLimits> limits() const override { return {}; }
  runtime::Result<std::vector<Estimated>> estimate(const BatchRefs&, const LogprobRefs&,
                                                   const std::vector<EstimateTask>&) override {
    return runtime::internal_error("not asked for");
  }
  runtime::Result<std::vector<TokenEstimates>> get(const EstimateRefs&) const override {
    return runtime::internal_error("not asked for");
  }
};

class NoState : public StageState {
 public:
  nlohmann::ordered_json state(const RunProgress& progress, std::int64_t epoch) const override {
    return {{"step", progress.step}, {"epoch", epoch}};
  }
  runtime::Result<CheckpointSaver::WriteFiles> copy(bool, nlohmann::ordered_json) const override {
    return runtime::internal_error("not asked for");
  }
  runtime::Result<SavedAt> restore(const std::filesystem::path&,
                                   const nlohmann::ordered_json&) override {
    return SavedAt{.step = 7, .epoch = 2};
  }
};

class RlStageTest : public ::testing::Test {
 protected:
  RlStageTest() {
    options_.batch_prompts = 4;
    options_.samples_per_prompt = 2;
    credit_ = make_credit(options_, {generate_, reward_, estimates_}, /*data_rows=*/100);
    source_ = std::make_unique<ScoredSource>(
        ScoredSourceOptions{.samples_per_prompt = 2, .group_size_min = 2},
        std::make_unique<GeneratedNow>(prompts_, generate_), reward_, batches_, *credit_.reader,
        &balancer_, &references_);
  }

  RlStage stage() {
    return {{.prompt_tokens_max = 8, .validation_interval = 2, .alarms = {}},
            {.source = *source_,
             .credit = *credit_.phase,
             .update = update_,
             .dump = dump_,
             .estimates = estimates_,
             .skipped = skipped_,
             .validator = &validator_,
             .state = state_,
             .learn_order =
                 [this](std::span<const RowOutcome> outcomes) {
                   outcomes_.assign(outcomes.begin(), outcomes.end());
                   return runtime::Status();
                 },
             .profiled_groups = [] { return std::vector<ProfiledGroup>(); },
             .begin =
                 [this](std::int64_t steps_done) {
                   begun_at_.push_back(steps_done);
                   return runtime::Status();
                 }}};
  }

  TrainerOptions options_;
  FakeBatches batches_;
  FakePrompts prompts_{4, 2};
  FakeGenerate generate_{batches_, 2, 2};
  FakeScore reward_{batches_};
  NoEstimates estimates_;
  FakeUpdate calls_;
  Balancer balancer_{batches_, /*moves=*/false};
  References references_{nullptr, {}};
  CreditParts credit_;
  std::unique_ptr<SampleSource> source_;
  UpdatePhase update_{{.policy_rate = {.peak = 0.25}}, calls_};
  SampleDump dump_{{}, reward_};
  SkippedUpdates skipped_{{{"actor", 1}}};
  Validator validator_{[] { return std::vector<StepPrompts>{fake_prompts(2, 2)}; }, generate_,
                       reward_, dump_, /*shown_samples=*/3};
  NoState state_;
  std::vector<RowOutcome> outcomes_;
  std::vector<std::int64_t> begun_at_;
};

TEST_F(RlStageTest, DrawsScoresCreditsAndUpdates) {
  RlStage stage = this->stage();
  const auto step = stage.step(1);
  ASSERT_TRUE(step.ok()) << step.status().message();
  ASSERT_EQ(calls_.plans.size(), 2u);
  EXPECT_EQ(calls_.plans[0].advantages.size(), 4u);
  ASSERT_EQ(calls_.plans[0].mini_batches.size(), 1u);
  EXPECT_EQ(calls_.plans[0].mini_batches[0].micro_batches.size(), 2u) << "of 4 samples, 3 a pass";
  EXPECT_EQ(calls_.plans[0].mini_batches[0].scoring_batches.size(), 4u) << "of 4 samples, 1 a pass";
  EXPECT_EQ(calls_.plans[0].scoring_batches.size(), 4u);
  EXPECT_EQ(step->metrics.at("actor/loss"), 0.5);
  EXPECT_EQ(step->metrics.at("critic/score/mean"), 0.5);
  EXPECT_EQ(step->metrics.at("training/global_step"), 1.0);
  EXPECT_EQ(step->metrics.at("reward/scored"), 2.0);
  EXPECT_TRUE(step->metrics.contains("timing_s/step"));
  EXPECT_TRUE(stage.can_repeat_step() == false);  // the weights have moved
  ASSERT_EQ(outcomes_.size(), 8u);
  EXPECT_EQ(outcomes_[0].row, 100);
}

TEST_F(RlStageTest, AStepThatFailsBeforeItsUpdateCanBeRepeated) {
  RlStage stage = this->stage();
  reward_.of = [](std::int64_t, std::int64_t) { return std::nan(""); };
  EXPECT_FALSE(stage.step(1).ok());
  EXPECT_TRUE(stage.can_repeat_step());
  reward_.of = [](std::int64_t, std::int64_t sample) { return static_cast<double>(sample); };
  calls_.policy_failure = runtime::task_failed("out of memory");
  EXPECT_EQ(stage.step(1).status().message(), "out of memory");
  EXPECT_FALSE(stage.can_repeat_step());
}

TEST_F(RlStageTest, BeginsOnceWithTheStepsThatAreDone) {
  RlStage stage = this->stage();
  ASSERT_EQ(*stage.restore("/nowhere", {}), 7);
  EXPECT_EQ(stage.epoch(), 2);
  ASSERT_TRUE(stage.begin().ok());
  ASSERT_TRUE(stage.begin().ok());
  EXPECT_EQ(begun_at_, std::vector<std::int64_t>{7});
}

TEST_F(RlStageTest, ValidatesEveryNStepsAndAfterTheLastOne) {
  RlStage stage = this->stage();
  EXPECT_FALSE(stage.validates_after(1, 3));
  EXPECT_TRUE(stage.validates_after(2, 3));
  EXPECT_TRUE(stage.validates_after(3, 3));
  const auto metrics = stage.validate_after(2);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  EXPECT_EQ(metrics->at("val-core/toy/reward/mean@2"), 0.5);
  EXPECT_EQ(validator_.first_samples().size(), 3u);
}

}  // namespace
}  // namespace rl
