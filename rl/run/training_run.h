// TrainingRun: the one loop of all trainings. Steps, validations, records, profiles, alarms, early
// stop, checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rl/checkpoint/checkpoint_saver.h"
#include "rl/checkpoint/early_stop.h"
#include "rl/checkpoint/save_times.h"
#include "rl/run/run_journal.h"
#include "rl/run/stage.h"
#include "rl/run/step_profiler.h"
#include "runtime/core/result.h"

namespace rl {

struct TrainingRunOptions {
  std::int64_t total_steps = 0;
  SaveTimes save;
  std::int64_t steps_an_epoch = 0;  // for saving; 0: epochs do not count
  bool async_save = true;           // checkpoints are written while training goes on
  EarlyStopOptions early_stop = {};
  CheckpointSaverOptions checkpoints = {};
};

/// Borrows the stage and the journal. A resource; one thread at a time.
class TrainingRun {
 public:
  TrainingRun(TrainingRunOptions options, Stage& stage, RunJournal& journal, StepProfiler profiler);

  /// Trains at most N steps, up to the last one; validates and saves as the options say, and
  /// both after the last step. What was trained before a step that fails is saved. A checkpoint
  /// that cannot be written does not stop the training: its failure is returned at the end.
  /// kTaskFailed: training has diverged, or an alarm ended it.
  runtime::Status fit(std::int64_t steps);

  /// One step; what fit() repeats.
  runtime::Result<Metrics> step();

  /// Reports what the stage finds alarming in metrics of now.
  void watch(Metrics& metrics);

  /// A record of now.
  void record(Metrics metrics);

  /// Writes a checkpoint of now, and waits for it. Returns its folder.
  runtime::Result<std::filesystem::path> save_checkpoint();

  /// Continues from a checkpoint's folder.
  runtime::Status restore(const std::filesystem::path& folder);

  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t total_steps() const { return options_.total_steps; }
  std::optional<std::filesystem::path> latest_checkpoint() const { return saver_.latest(); }
  std::optional<std::string> stopped_early() const { return early_stop_.reason_to_stop(); }

 private:
  runtime::Status train(std::int64_t last);
  runtime::Result<Metrics> taken_step();
  runtime::Result<bool> validate(Metrics& metrics);
  runtime::Status with_last_checkpoint(const runtime::Status& broken) const;
  void save(bool best, bool ends);
  bool saves_now() const;
  void keep(const nlohmann::ordered_json& state);
  nlohmann::ordered_json state() const;

  TrainingRunOptions options_;
  Stage& stage_;
  RunJournal& journal_;
  StepProfiler profiler_;
  EarlyStop early_stop_;
  runtime::Status diverged_;  // why no checkpoint of these weights is useful
  std::int64_t steps_done_ = 0;
  CheckpointSaver saver_;  // last, since its thread uses the rest
};

}  // namespace rl
