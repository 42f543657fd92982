// The loop of all trainings, over a stage that only counts.
#include "rl/run/training_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "rl/checkpoint/resume.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;

class CountingStage : public Stage {
 public:
  std::vector<ProfiledGroup> profiled_groups() const override { return {}; }
  Result<StageStep> step(std::int64_t number) override {
    if (number == fails_at) return runtime::task_failed("no luck");
    StageStep step{.metrics = {{"value", static_cast<double>(number)}}};
    if (number == breaks_at) step.broken = runtime::task_failed("broken.");
    if (number == diverged_at) step.diverged = runtime::task_failed("diverged");
    steps.push_back(number);
    return step;
  }
  bool can_repeat_step() const override { return true; }
  std::int64_t epoch() const override { return 0; }
  bool validates_after(std::int64_t step, std::int64_t) const override {
    return validations.contains(step);
  }
  Result<Metrics> validate_after(std::int64_t step) override {
    if (step == validation_fails_at) return runtime::task_failed("no answer");
    return Metrics{{"val-core/value", 1.0}};
  }
  std::vector<std::string> observe(Metrics& metrics) override {
    return metrics["value"] == alarm_at ? std::vector<std::string>{"too much"}
                                        : std::vector<std::string>{};
  }
  AlarmAction alarm_action() const override { return AlarmAction::kStop; }
  nlohmann::ordered_json state(const RunProgress& progress) const override {
    return {{"step", progress.step}, {EarlyStop::kStateKey, progress.early_stop}};
  }
  Result<CheckpointSaver::WriteFiles> copy_state(bool,
                                                 nlohmann::ordered_json state) const override {
    return CheckpointSaver::WriteFiles(
        [state](CheckpointWriter& writer) -> Result<std::vector<fs::path>> {
          if (const auto written = writer.write_json(kRunStateFile, state); !written.ok())
            return written;
          return std::vector<fs::path>{kRunStateFile};
        });
  }
  Result<std::int64_t> restore(const fs::path&, const nlohmann::ordered_json& state) override {
    return state["step"].get<std::int64_t>();
  }

  std::int64_t fails_at = 0, breaks_at = 0, diverged_at = 0, validation_fails_at = 0;
  double alarm_at = -1;
  std::set<std::int64_t> validations;
  std::vector<std::int64_t> steps;
};

class TrainingRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("starling-run-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    options_ = {.total_steps = 4,
                .save = {.steps = 2},
                .async_save = false,
                .checkpoints = {.folder = root_, .kept = 0, .best = {}}};
    journal_.on_step([this](const StepRecord& record) { records_.push_back(record); });
  }
  void TearDown() override { fs::remove_all(root_); }

  TrainingRun run() { return TrainingRun(options_, stage_, journal_, StepProfiler()); }
  bool has_step(int step) const {
    return fs::exists(root_ / ("global_step_" + std::to_string(step)));
  }
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  fs::path root_;
  TrainingRunOptions options_;
  CountingStage stage_;
  RunJournal journal_;
  std::vector<StepRecord> records_;
};

TEST_F(TrainingRunTest, TakesAllStepsRecordsThemAndSaves) {
  stage_.validations = {2};
  TrainingRun run = this->run();
  ASSERT_TRUE(run.fit(kAll).ok());
  EXPECT_EQ(stage_.steps, (std::vector<std::int64_t>{1, 2, 3, 4}));
  ASSERT_EQ(records_.size(), 4u);
  EXPECT_TRUE(records_[1].metrics.contains("val-core/value"));
  EXPECT_FALSE(records_[2].metrics.contains("val-core/value"));
  EXPECT_TRUE(has_step(2));
  EXPECT_TRUE(has_step(4));
  EXPECT_FALSE(has_step(3));
}

TEST_F(TrainingRunTest, ContinuesAfterSomeStepsAndFromACheckpoint) {
  TrainingRun run = this->run();
  ASSERT_TRUE(run.fit(3).ok());
  EXPECT_EQ(run.steps_done(), 3);
  EXPECT_FALSE(has_step(3));
  TrainingRun again = this->run();
  ASSERT_TRUE(again.restore(root_ / "global_step_2").ok());
  EXPECT_EQ(again.steps_done(), 2);
  ASSERT_TRUE(again.fit(kAll).ok());
  EXPECT_EQ(again.steps_done(), 4);
}

TEST_F(TrainingRunTest, SavesWhatWasTrainedBeforeAStepThatFails) {
  stage_.fails_at = 4;
  TrainingRun run = this->run();
  EXPECT_EQ(run.fit(kAll).message(), "step 4: no luck");
  EXPECT_TRUE(has_step(3));
}

TEST_F(TrainingRunTest, AStepThatBreaksTheRunIsCountedAndNotRecorded) {
  stage_.breaks_at = 3;
  TrainingRun run = this->run();
  EXPECT_EQ(run.fit(kAll).message(), "broken. The last checkpoint is from before it");
  EXPECT_EQ(run.steps_done(), 3);
  EXPECT_EQ(records_.size(), 2u);
  EXPECT_FALSE(has_step(3));
}

TEST_F(TrainingRunTest, DivergenceEndsItWithoutACheckpoint) {
  stage_.diverged_at = 2;
  TrainingRun run = this->run();
  EXPECT_EQ(run.fit(kAll).message(), "diverged");
  EXPECT_EQ(records_.size(), 2u);
  EXPECT_FALSE(has_step(2));
}

TEST_F(TrainingRunTest, AValidationThatFailsKeepsItsStep) {
  stage_.validations = {3};
  stage_.validation_fails_at = 3;
  TrainingRun run = this->run();
  EXPECT_EQ(run.fit(kAll).message(), "validation after step 3: no answer");
  EXPECT_EQ(records_.size(), 3u);
  EXPECT_TRUE(has_step(3));
}

TEST_F(TrainingRunTest, AnAlarmEndsItWithACheckpoint) {
  stage_.alarm_at = 3;
  TrainingRun run = this->run();
  EXPECT_EQ(run.fit(kAll).message(),
            "stopped by an alarm (trainer.alarms.action=stop): step 3: too much");
  EXPECT_EQ(journal_.alarms(), std::vector<std::string>{"step 3: too much"});
  EXPECT_TRUE(has_step(3));
}

TEST_F(TrainingRunTest, StopsEarlyOnItsMetric) {
  options_.early_stop = {.goal = {.metric = "value"}, .target = 2.0};
  TrainingRun run = this->run();
  ASSERT_TRUE(run.fit(kAll).ok());
  EXPECT_EQ(run.steps_done(), 2);
  EXPECT_TRUE(run.stopped_early());
  EXPECT_TRUE(has_step(2));
}

TEST_F(TrainingRunTest, ACallBackStopsIt) {
  journal_.on_step([this](const StepRecord& record) {
    if (record.step == 1) journal_.stop();
  });
  TrainingRun run = this->run();
  ASSERT_TRUE(run.fit(kAll).ok());
  EXPECT_EQ(run.steps_done(), 1);
  EXPECT_TRUE(has_step(1));
}

}  // namespace
}  // namespace rl
