// StageTrainer: a training by rows of data as one object. A facade over TrainingRun.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/checkpoint/folder_lock.h"
#include "rl/metrics/metrics.h"
#include "rl/optim/lr_schedule.h"
#include "rl/run/data_stage.h"
#include "rl/run/data_training.h"
#include "rl/run/run_journal.h"
#include "rl/run/training_run.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// Trains one stage. Its checkpoints are those of checkpoint.h, with `huggingface/` (or
/// `lora_adapter/`) and the optimizer directly below global_step_N. A resource; one thread at a
/// time. Borrows the runtime, which must have the stage's actors.
class StageTrainer {
 public:
  /// Everything that can be found wrong before the first step is found here, the data first. Errors
  /// name the key, file or row, and the cure.
  static runtime::Result<std::unique_ptr<StageTrainer>> create(runtime::Runtime& runtime,
                                                               const Config& config,
                                                               std::unique_ptr<DataStage> stage);

  StageTrainer(const StageTrainer&) = delete;
  StageTrainer& operator=(const StageTrainer&) = delete;

  /// Trains up to total_steps(), or until trainer.early_stop or stop() ends it, validating and
  /// saving as the configuration says, and both after the last step. One that ends early is saved,
  /// too, and so are the steps before one whose data, or whose validation, fail.
  /// Checkpoints are written while the next steps are taken; the last is waited for. One that
  /// cannot be written does not stop the training, unless it is the last. Then fit() returns that
  /// failure at the end. kTaskFailed: ten updates in a row had no finite gradient; an alarm went
  /// off, with trainer.alarms.action=stop.
  runtime::Status fit();

  /// Writes what a full disk held back of the metrics. Errors: why some of it still cannot be
  /// written; it is kept for another try.
  runtime::Status flush_logs() { return journal_.flush(); }

  /// Called after every step.
  void on_step(std::function<void(const StepRecord&)> callback) {
    journal_.on_step(std::move(callback));
  }

  /// For a call-back: no step is to follow the one just reported. fit() saves it, unless
  /// trainer.save_freq=0, and returns.
  void stop() { journal_.stop(); }

  const StageOptions& options() const { return setup_.options; }
  const MetricLogger& log() const { return journal_.logger(); }
  std::int64_t steps_done() const { return run_->steps_done(); }
  std::int64_t total_steps() const { return run_->total_steps(); }
  std::optional<std::filesystem::path> latest_checkpoint() const {
    return run_->latest_checkpoint();
  }

  /// What alarms have told in this process, with their steps.
  const std::vector<std::string>& alarms() const { return journal_.alarms(); }

  /// Why `trainer.early_stop` ended the training, if it did, in this process or in the one that
  /// wrote the checkpoint it continues from.
  std::optional<std::string> stopped_early() const { return run_->stopped_early(); }

 private:
  StageTrainer(runtime::Runtime& runtime, StageSetup setup, std::unique_ptr<DataStage> stage,
               FolderLock lock);

  runtime::Status check_model(const std::filesystem::path& checkpoint) const;
  runtime::Status make_run(StepProfiler profiler);
  runtime::Status start_workers(const SlotOptions& options);
  runtime::Status open_logs();
  runtime::Status validate_first();

  runtime::Runtime& runtime_;
  StageSetup setup_;
  std::unique_ptr<DataStage> stage_;
  FolderLock folder_lock_;
  WorkerSlots slots_;
  LrScheduleOptions lr_schedule_;
  RunJournal journal_;
  std::unique_ptr<DataTraining> training_;
  std::unique_ptr<TrainingRun> run_;
};

/// A complete checkpoint of a stage's folder, and what it trained up to; for who goes on from there
/// (pipelines).
struct StageResult {
  std::filesystem::path checkpoint;  // global_step_N
  std::filesystem::path model;       // a Hugging Face folder; empty where an adapter was trained
  std::filesystem::path adapter;     // empty where all weights were trained
  std::int64_t step = 0;
};

/// The newest, or the best, which `trainer.save_best` has kept. kNotFound: no such checkpoint
/// there.
runtime::Result<StageResult> find_stage_result(const std::filesystem::path& folder,
                                               bool best = false);

}  // namespace rl
