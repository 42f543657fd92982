// Options of the loop and the workers of a stage, read from the configuration once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/checkpoint/early_stop.h"
#include "rl/checkpoint/resume.h"
#include "rl/checkpoint/save_times.h"
#include "rl/config/config.h"
#include "rl/data/prompt_builder.h"
#include "rl/run/loss_alarms.h"
#include "rl/run/run_length.h"
#include "rl/worker/stage_worker_options.h"
#include "runtime/core/result.h"

namespace rl {

/// Every N steps, or at the end of each epoch.
struct StageInterval {
  std::int64_t steps = -1;  // below 1: never
  bool each_epoch = false;

  /// The interval in steps.
  std::int64_t in_steps(std::int64_t batches_per_epoch) const {
    return each_epoch ? batches_per_epoch : steps;
  }
};

/// Settings of a stage of training on data. Size: a field a key.
struct StageOptions : StageWorkerOptions {
  std::int64_t batch_rows = 1;     // a step, over all workers
  std::int64_t tokens_max = 1024;  // of a sequence
  Truncation truncation = Truncation::kError;
  MicroBatchLimits micro_batch;

  RunLength length;
  SaveTimes save;
  StageInterval validation;
  bool validate_first = false;  // before the first step of a run
  SaveBestOptions save_best;
  EarlyStopOptions early_stop;
  LossAlarmOptions alarms;
  std::int64_t gradient_leaves = 0;   // see GradientRound; 0: one a worker
  bool async_save = true;             // checkpoints are written while training goes on
  std::int64_t checkpoints_kept = 0;  // 0: all

  std::filesystem::path folder;  // of checkpoints and logs
  ResumeOptions resume;
  std::vector<std::string> loggers = {"console"};
  std::string project;
  std::string experiment;
  std::int64_t log_interval = 1;

  std::uint64_t shuffle_seed = 0;
  bool shuffle = true;

  /// kInvalidArgument: trainer.save_best or trainer.early_stop.metric names a metric of validation,
  /// and there is nothing to validate on.
  runtime::Status check_validation(const Config& config, bool validates) const;

  /// Whether training goes on during a checkpoint at some time: then there is a copy of what is
  /// saved.
  bool copies() const { return async_save && (save.repeats() || !save_best.goal.metric.empty()); }

  /// From `data.*`, `model.lora_*`, `optim.*` and `trainer.*`. kInvalidArgument: a value out of
  /// range, by key.
  static runtime::Result<StageOptions> from_config(const Config& config);
};

}  // namespace rl
