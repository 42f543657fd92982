// DataTraining: a DataStage as the Stage of a training run. Learning rate, metrics, alarms, state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rl/optim/lr_schedule.h"
#include "rl/run/data_stage.h"
#include "rl/run/divergence_detector.h"
#include "rl/run/loss_alarms.h"
#include "rl/run/stage.h"
#include "runtime/core/result.h"

namespace rl {

/// Borrows the setup and the stage. A resource; one thread at a time.
class DataTraining : public Stage {
 public:
  DataTraining(const StageSetup& setup, DataStage& stage, const LrScheduleOptions& lr_schedule)
      : setup_(setup), stage_(stage), lr_schedule_(lr_schedule), alarms_(setup.options.alarms) {}

  std::vector<ProfiledGroup> profiled_groups() const override { return stage_.profiled_groups(); }
  runtime::Result<StageStep> step(std::int64_t number) override;
  bool can_repeat_step() const override { return !updating_; }
  std::int64_t epoch() const override { return stage_.epoch(); }
  bool validates_after(std::int64_t step, std::int64_t total_steps) const override;
  runtime::Result<Metrics> validate_after(std::int64_t step) override;
  std::vector<std::string> observe(Metrics& metrics) override { return alarms_.observe(metrics); }
  AlarmAction alarm_action() const override { return alarms_.options().action; }
  nlohmann::ordered_json state(const RunProgress& progress) const override;
  runtime::Result<CheckpointSaver::WriteFiles> copy_state(
      bool async, nlohmann::ordered_json state) const override;
  runtime::Result<std::int64_t> restore(const std::filesystem::path& folder,
                                        const nlohmann::ordered_json& state) override;

 private:
  void add_run_metrics(std::int64_t number, double rate, double seconds, Metrics& metrics);

  const StageSetup& setup_;
  DataStage& stage_;
  LrScheduleOptions lr_schedule_;
  LossAlarms alarms_;
  DivergenceDetector divergence_;
  std::int64_t tokens_done_ = 0;
  bool updating_ = false;  // the weights may be neither of the step before nor of this one
};

}  // namespace rl
