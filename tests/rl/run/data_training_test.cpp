// A training by rows of data, over a stage that does what the test says.
#include "rl/run/data_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "rl/checkpoint/changed_keys.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/checkpoint/resume.h"
#include "rl/config/stage_keys.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Each step gives `metrics`, and all that is asked for is noted; fails where the test says so.
class ScriptedStage final : public DataStage {
 public:
  Status open(const StageSetup&) override { return {}; }
  std::int64_t batches_per_epoch() const override { return 3; }
  Result<std::string> first_row() const override { return std::string("row"); }
  RowLengths row_lengths() const override { return {}; }
  Status start(runtime::Runtime&, const StageSetup&, const WorkerSlots&) override { return {}; }
  std::vector<ProfiledGroup> profiled_groups() const override { return {}; }
  Status next_batch() override { return done("next_batch"); }
  Result<Metrics> step(double learning_rate) override {
    rates.push_back(learning_rate);
    if (const Status taken = done("step"); !taken.ok()) return taken;
    return metrics;
  }
  std::int64_t epoch() const override { return 4; }
  bool validates() const override { return has_validation; }
  Result<Metrics> validate() override {
    if (const Status validated = done("validate"); !validated.ok()) return validated;
    return Metrics{{"val/loss", 0.5}};
  }
  nlohmann::json position() const override { return {{"row", log.size()}}; }
  Status resume(const nlohmann::json& position) override {
    return done("resume " + position.dump());
  }
  Result<WriteState> state(bool async) const override {
    if (const Status copied = done(async ? "copy" : "no copy"); !copied.ok()) return copied;
    return WriteState([this](const fs::path& folder) {
      (void)done("begin to write");
      return [this, folder]() -> WrittenFiles {
        if (const Status written = done("write"); !written.ok()) return written;
        std::ofstream(folder / "weights") << "seven";
        return std::vector<std::string>{"weights"};
      };
    });
  }
  Status load(const fs::path& folder) override {
    return done("load " + folder.filename().string());
  }

  Metrics metrics = {{"train/loss", 2.0}, {"train/global_tokens", 1000.0}};
  bool has_validation = true;
  std::map<std::string, Status> fails = {};  // by what is asked for
  mutable std::vector<std::string> log;
  std::vector<double> rates;

 private:
  Status done(const std::string& what) const {
    log.push_back(what);
    const auto failure = fails.find(what);
    return failure == fails.end() ? Status() : failure->second;
  }
};

using StageLog = std::vector<std::string>;

class DataTrainingTest : public ::testing::Test {
 protected:
  DataTrainingTest()
      : setup_{.config = *Config::load({.file = {}, .overrides = {}, .keys = &sft_keys()}),
               .options = {},
               .model = {},
               .identity = {.name = "a model", .fingerprint = "f00d", .adapter = false},
               .workers = 2} {
    setup_.options.alarms = {.action = AlarmAction::kStop, .steps = 1};
    setup_.options.seed = 42;
  }

  DataTraining training() { return DataTraining(setup_, stage_, rates_); }
  StageStep taken(DataTraining& training, std::int64_t number) {
    Result<StageStep> step = training.step(number);
    EXPECT_TRUE(step.ok()) << step.status().to_string();
    return step.ok() ? std::move(*step) : StageStep{};
  }
  // The files that a checkpoint of it is made of.
  Result<std::vector<fs::path>> write(const Result<CheckpointSaver::WriteFiles>& files) {
    EXPECT_TRUE(files.ok()) << files.status().to_string();
    auto writer = CheckpointWriter::begin(folder_.path() / "run", 7);
    EXPECT_TRUE(writer.ok()) << writer.status().to_string();
    writer_.emplace(std::move(*writer));
    return (*files)(*writer_);
  }
  std::string read(const fs::path& file) const {
    std::ostringstream text;
    text << std::ifstream(writer_->folder() / file).rdbuf();
    return text.str();
  }

  const support::TemporaryFolder folder_;
  StageSetup setup_;
  ScriptedStage stage_;
  LrScheduleOptions rates_{.peak = 0.1, .warmup_steps = 2};
  std::optional<CheckpointWriter> writer_;
};

TEST_F(DataTrainingTest, AStepIsDrawnTakenAtItsRateAndMeasured) {
  DataTraining training = this->training();
  const StageStep first = taken(training, 1), second = taken(training, 2);
  EXPECT_EQ(stage_.log, (StageLog{"next_batch", "step", "next_batch", "step"}));
  EXPECT_EQ(stage_.rates, (std::vector<double>{0.05, 0.1}));
  EXPECT_TRUE(second.broken.ok());
  EXPECT_TRUE(second.diverged.ok());
  EXPECT_FALSE(second.diverging);
  const Metrics& metrics = second.metrics;
  EXPECT_EQ(metrics.at("train/loss"), 2.0);
  EXPECT_EQ(metrics.at("train/lr"), 0.1);
  EXPECT_EQ(first.metrics.at("train/total_tokens(B)"), 1000.0 / 1e9);
  EXPECT_EQ(metrics.at("train/total_tokens(B)"), 2000.0 / 1e9);
  EXPECT_EQ(metrics.at("training/global_step"), 2.0);
  EXPECT_EQ(metrics.at("training/epoch"), 4.0);
  const double seconds = metrics.at("timing_s/step");
  EXPECT_GT(seconds, 0.0);
  EXPECT_DOUBLE_EQ(metrics.at("perf/throughput"), 1000.0 / seconds / 2.0) << "of a worker";
}

TEST_F(DataTrainingTest, OnlyAStepWhoseBatchCouldNotBeDrawnCanBeRepeated) {
  DataTraining training = this->training();
  stage_.fails = {{"next_batch", runtime::unavailable("no rows")}};
  EXPECT_EQ(training.step(1).status().message(), "no rows");
  EXPECT_TRUE(training.can_repeat_step());
  EXPECT_TRUE(stage_.rates.empty());
  stage_.fails = {{"step", runtime::unavailable("no worker")}};
  EXPECT_EQ(training.step(1).status().message(), "no worker");
  EXPECT_FALSE(training.can_repeat_step()) << "some weights may have been updated";
}

TEST_F(DataTrainingTest, ALossThatIsNotFiniteBreaksTheRun) {
  DataTraining training = this->training();
  stage_.metrics["train/loss"] = kNan;
  const StageStep step = taken(training, 3);
  EXPECT_EQ(step.broken.code(), ErrorCode::kTaskFailed);
  EXPECT_TRUE(step.broken.message().starts_with("step 3: its loss is not finite"))
      << step.broken.message();
  EXPECT_TRUE(step.metrics.empty()) << "it has no record";
  stage_.metrics["train/loss"] = 1.0;
  EXPECT_EQ(taken(training, 4).metrics.at("train/total_tokens(B)"), 1000.0 / 1e9);
}

TEST_F(DataTrainingTest, SkippedUpdatesDivergeWhenTheyAreConsecutive) {
  DataTraining training = this->training();
  const auto skip = [&](std::int64_t number) {
    stage_.metrics["train/skipped_updates"] = 1.0;
    stage_.metrics["train/loss"] = kNan;  // as such a step may have it
    return taken(training, number);
  };
  std::int64_t number = 0;
  const std::int64_t most = DivergenceDetector::kStepsMax;
  for (; number < most - 1; ++number) {
    const StageStep step = skip(number + 1);
    EXPECT_TRUE(step.broken.ok()) << step.broken.to_string();
    EXPECT_TRUE(step.diverging);
    EXPECT_TRUE(step.diverged.ok());
  }
  stage_.metrics = {{"train/loss", 2.0}, {"train/skipped_updates", 0.0}};
  EXPECT_FALSE(taken(training, ++number).diverging);
  for (std::int64_t i = 0; i < most - 1; ++i) EXPECT_TRUE(skip(++number).diverged.ok());
  EXPECT_EQ(skip(++number).diverged.code(), ErrorCode::kTaskFailed);
}

TEST_F(DataTrainingTest, ValidationsAreEveryNStepsOrEpochsAndAfterTheLast) {
  const auto validated = [&] {
    const DataTraining training = this->training();
    std::vector<std::int64_t> steps;
    for (std::int64_t step = 1; step <= 7; ++step)
      if (training.validates_after(step, 7)) steps.push_back(step);
    return steps;
  };
  using Steps = std::vector<std::int64_t>;
  EXPECT_EQ(validated(), Steps{7});
  setup_.options.validation.steps = 2;
  EXPECT_EQ(validated(), (Steps{2, 4, 6, 7}));
  setup_.options.validation.each_epoch = true;
  EXPECT_EQ(validated(), (Steps{3, 6, 7}));
  stage_.has_validation = false;
  EXPECT_EQ(validated(), Steps{});
}

TEST_F(DataTrainingTest, AValidationIsTimed) {
  DataTraining training = this->training();
  const auto metrics = training.validate_after(1);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->at("val/loss"), 0.5);
  EXPECT_TRUE(metrics->contains("timing_s/testing"));
  stage_.fails = {{"validate", runtime::unavailable("no worker")}};
  EXPECT_EQ(training.validate_after(1).status().message(), "no worker");
}

TEST_F(DataTrainingTest, ARunGoesOnFromWhatACheckpointHas) {
  ordered_json state;
  {
    DataTraining before = this->training();
    for (std::int64_t number = 1; number <= 2; ++number) {
      StageStep step = taken(before, number);
      EXPECT_TRUE(before.observe(step.metrics).empty());
    }
    state = before.state(
        {.step = 2, .total_steps = 9, .early_stop = {{"waits", 1}}, .best = {{"step", 1}}});
  }
  EXPECT_EQ(state["stage"], "sft");
  EXPECT_EQ(state["step"], 2);
  EXPECT_EQ(state["epoch"], 4);
  EXPECT_EQ(state["seed"], 42);
  EXPECT_EQ(state["tokens"], 2000);
  EXPECT_EQ(state["total_steps"], 9);
  EXPECT_EQ(state[EarlyStop::kStateKey], (ordered_json{{"waits", 1}}));
  EXPECT_EQ(state["best"], (ordered_json{{"step", 1}}));
  EXPECT_EQ(state[ModelIdentity::kStateKey]["fingerprint"], "f00d");

  stage_.log.clear();
  DataTraining after = this->training();
  const auto restored = after.restore(folder_.path() / "global_step_2", state);
  ASSERT_TRUE(restored.ok()) << restored.status().to_string();
  EXPECT_EQ(*restored, 2);
  EXPECT_EQ(stage_.log, (StageLog{R"(resume {"row":4})", "load global_step_2"}));
  stage_.metrics["train/loss"] = 200.0;
  StageStep third = taken(after, 3);
  EXPECT_EQ(third.metrics.at("train/total_tokens(B)"), 3000.0 / 1e9);
  EXPECT_EQ(after.observe(third.metrics).size(), 1u) << "it was 2 before the checkpoint";
  EXPECT_EQ(third.metrics.at("alarms/train_loss_rise"), 1.0);
  EXPECT_EQ(after.alarm_action(), AlarmAction::kStop);
}

TEST_F(DataTrainingTest, AStateOfAnotherRunOrDamagedIsRefusedBeforeAnythingIsRead) {
  DataTraining training = this->training();
  const ordered_json whole = training.state({.step = 2, .total_steps = 9});
  const auto refused = [&](const std::string& key, const ordered_json& value) {
    ordered_json state = whole;
    if (value.is_null())
      state.erase(key);
    else
      state[key] = value;
    const Status status = training.restore(folder_.path(), state).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << key;
    EXPECT_NE(status.message().find(kRunStateFile), std::string::npos) << status.message();
    return status.message();
  };
  EXPECT_NE(refused("stage", "dpo").find("`starling dpo`"), std::string::npos);
  refused("format", 2);
  refused("format", "1");
  refused("step", -1);
  refused("tokens", nullptr);
  refused("position", nullptr);
  EXPECT_TRUE(stage_.log.empty());
}

TEST_F(DataTrainingTest, WhatTheStageCannotResumeNamesTheFolder) {
  DataTraining training = this->training();
  const ordered_json state = training.state({.step = 2, .total_steps = 9});
  stage_.fails = {{R"(resume {"row":0})", runtime::invalid_argument("other data")}};
  const Status status = training.restore(folder_.path(), state).status();
  EXPECT_EQ(status.message(), "resuming from " + folder_.path().string() + ": other data");
  EXPECT_EQ(stage_.log, (StageLog{R"(resume {"row":0})"})) << "no weights were read";
}

TEST_F(DataTrainingTest, ACheckpointHasTheRunItsConfigurationAndTheWorkersFiles) {
  const DataTraining training = this->training();
  const ordered_json state = training.state({.step = 2, .total_steps = 9});
  const auto files = write(training.copy_state(/*async=*/true, state));
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  EXPECT_EQ(*files, (std::vector<fs::path>{kRunStateFile, kSavedConfigFile, "weights"}));
  EXPECT_EQ(stage_.log, (StageLog{"copy", "begin to write", "write"}));
  EXPECT_EQ(ordered_json::parse(read(kRunStateFile)), state);
  EXPECT_EQ(read(kSavedConfigFile), setup_.config.to_yaml());
  EXPECT_EQ(read("weights"), "seven");
  EXPECT_TRUE(writer_->commit(*files).ok());
  stage_.log.clear();
  ASSERT_TRUE(write(training.copy_state(/*async=*/false, state)).ok());
  EXPECT_EQ(stage_.log.front(), "no copy");
}

TEST_F(DataTrainingTest, ACheckpointOfAWorkerThatFailsHasNoState) {
  const DataTraining training = this->training();
  stage_.fails = {{"write", runtime::unavailable("a full disk")}};
  const auto files = write(training.copy_state(/*async=*/true, ordered_json::object()));
  EXPECT_EQ(files.status().message(), "a full disk");
  EXPECT_FALSE(fs::exists(writer_->folder() / kRunStateFile));
  stage_.fails = {{"copy", runtime::unavailable("no memory")}};
  EXPECT_EQ(training.copy_state(/*async=*/true, ordered_json::object()).status().message(),
            "no memory");
}

}  // namespace
}  // namespace rl
