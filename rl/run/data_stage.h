// DataStage: the parts in which the trainings around RL differ: supervised, distilled, on
// preferences, of a reward model. The loop is TrainingRun's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/actor/worker_group.h"
#include "rl/checkpoint/model_identity.h"
#include "rl/config/config.h"
#include "rl/feed/row_lengths.h"
#include "rl/metrics/metrics.h"
#include "rl/run/stage_options.h"
#include "rl/run/step_profiler.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// What every stage is given.
struct StageSetup {
  Config config;
  StageOptions options;
  std::filesystem::path model;  // what training starts from
  ModelIdentity identity = {};  // of it; empty where nothing is trained (a dry run)
  std::int64_t workers = 1;

  /// What a worker group of this stage is made from.
  WorkerSpec spec(const std::string& role, const WorkerSlots& slots) const;
};

/// One stage's data and workers. Called in the order of the methods; next_batch(), step() and
/// validate()
/// alternate. A resource; one thread at a time.
class DataStage {
 public:
  virtual ~DataStage() = default;

  /// Reads the data and finds what can be found wrong before anything is started. Errors name key,
  /// file or row.
  virtual runtime::Status open(const StageSetup& setup) = 0;

  virtual std::int64_t batches_per_epoch() const = 0;

  /// The first row for people, after open(): what the model reads, and which of it has a loss.
  virtual runtime::Result<std::string> first_row() const = 0;

  /// Of the rows that open() has seen, which are not all of the data where they are many.
  virtual RowLengths row_lengths() const = 0;

  /// What is probably meant otherwise in the data, after open().
  virtual std::vector<std::string> warnings() const { return {}; }

  /// Models that each worker holds next to the one that it trains, and never changes: teachers,
  /// references.
  virtual std::vector<std::filesystem::path> frozen_models() const { return {}; }

  /// Starts the workers on these slots; with the setup of open(), in which level of ZeRO workers
  /// have is settled.
  virtual runtime::Status start(runtime::Runtime& runtime, const StageSetup& setup,
                                const WorkerSlots& slots) = 0;

  /// The workers, for a profile; after start().
  virtual std::vector<ProfiledGroup> profiled_groups() const = 0;

  /// Takes the next batch from the data. On failure no weight has changed.
  virtual runtime::Status next_batch() = 0;

  /// Takes one optimizer step on the batch of the last next_batch(). Returns "train/..." of it:
  /// train/loss, train/grad_norm, and as train/global_tokens how many tokens went through the
  /// model. Denominators are those of the whole batch, so that its numbers do not depend on how
  /// many workers there are.
  virtual runtime::Result<Metrics> step(double learning_rate) = 0;

  /// The epoch of the last batch, from 0.
  virtual std::int64_t epoch() const = 0;

  /// Whether there are data to validate on.
  virtual bool validates() const = 0;

  /// "val/...", of all validation rows; no weight changes.
  virtual runtime::Result<Metrics> validate() = 0;

  /// What steps leave to the next ones besides weights, above all the position in the data; and
  /// back again.
  virtual nlohmann::json position() const = 0;
  virtual runtime::Status resume(const nlohmann::json& position) = 0;

  /// Model (or adapter) and optimizer of now, to be written as Learner::save() does, during the
  /// next steps or before them: see WorkerGroup::state().
  virtual runtime::Result<WriteState> state(bool async) const = 0;
  virtual runtime::Status load(const std::filesystem::path& folder) = 0;
};

}  // namespace rl
