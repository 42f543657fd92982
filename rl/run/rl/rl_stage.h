// RlStage: reinforcement learning from the scores of samples. The data flow of a step is
// RlStage::step(), on one screen.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rl/data/row_order.h"
#include "rl/run/alarms.h"
#include "rl/run/rl/credit_phase.h"
#include "rl/run/rl/rl_checkpoint.h"
#include "rl/run/rl/sample_dump.h"
#include "rl/run/rl/sample_source.h"
#include "rl/run/rl/skipped_updates.h"
#include "rl/run/rl/update_phase.h"
#include "rl/run/rl/validator.h"
#include "rl/run/stage.h"

namespace rl {

struct RlStageOptions {
  std::int64_t prompt_tokens_max = 0;
  std::int64_t validation_interval = -1;  // in steps; below 1: never
  AlarmOptions alarms;
};

/// What an RlStage is made of; borrowed.
struct RlStageParts {
  SampleSource& source;
  CreditPhase& credit;
  UpdatePhase& update;
  SampleDump& dump;
  const EstimateCalls& estimates;
  SkippedUpdates& skipped;
  Validator* validator;  // null: there are no validation data
  StageState& state;
  /// Tells the order of the data what came of rows; no function: it does not ask.
  std::function<runtime::Status(std::span<const RowOutcome>)> learn_order;
  std::function<std::vector<ProfiledGroup>()> profiled_groups;
  /// What happens once before the first step, given the steps that are done.
  std::function<runtime::Status(std::int64_t steps_done)> begin;
};

class RlStage : public Stage {
 public:
  RlStage(const RlStageOptions& options, RlStageParts parts)
      : options_(options), parts_(std::move(parts)), alarms_(options.alarms) {}

  runtime::Status begin() override;
  std::vector<ProfiledGroup> profiled_groups() const override { return parts_.profiled_groups(); }
  runtime::Result<StageStep> step(std::int64_t number) override;
  bool can_repeat_step() const override { return !updating_ && parts_.source.can_repeat_step(); }
  std::int64_t epoch() const override { return epoch_; }
  bool validates_after(std::int64_t step, std::int64_t total_steps) const override;
  runtime::Result<Metrics> validate_after(std::int64_t step) override {
    return parts_.validator->validate(step);
  }
  std::vector<std::string> observe(Metrics& metrics) override { return alarms_.observe(metrics); }
  AlarmAction alarm_action() const override { return options_.alarms.action; }
  nlohmann::ordered_json state(const RunProgress& progress) const override {
    return parts_.state.state(progress, epoch_);
  }
  runtime::Result<CheckpointSaver::WriteFiles> copy_state(
      bool async, nlohmann::ordered_json state) const override {
    return parts_.state.copy(async, std::move(state));
  }
  runtime::Result<std::int64_t> restore(const std::filesystem::path& folder,
                                        const nlohmann::ordered_json& state) override;

 private:
  runtime::Status dump(const StepBatch& batch, const Credit& credit, std::int64_t number,
                       StepTimer& timer);
  runtime::Status learn_order(const StepBatch& batch);

  RlStageOptions options_;
  RlStageParts parts_;
  Alarms alarms_;
  bool begun_ = false;
  bool updating_ = false;  // the weights may be neither of the step before nor of this one
  std::int64_t steps_done_ = 0;
  std::int64_t epoch_ = 0;
};

}  // namespace rl
