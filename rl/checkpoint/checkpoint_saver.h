// CheckpointSaver: the checkpoints of a run. What is to be saved is copied between two steps, and
// written, hashed and moved into place during the steps that follow. One at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "rl/checkpoint/checkpoint.h"
#include "rl/checkpoint/early_stop.h"
#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

struct CheckpointSaverOptions {
  std::filesystem::path folder;  // of the run
  std::int64_t kept = 0;         // 0: all
  SaveBestOptions best;
};

/// A resource; one thread at a time. Destroyed while a checkpoint is written, it waits for it.
class CheckpointSaver {
 public:
  /// Puts a checkpoint's files into its folder; returns those that must be there, relative to it.
  /// Another thread calls it, so that it owns what it needs.
  using WriteFiles =
      std::function<runtime::Result<std::vector<std::filesystem::path>>(CheckpointWriter& writer)>;
  /// Copies what is to be saved, between two steps.
  using CopyState = std::function<runtime::Result<WriteFiles>()>;

  explicit CheckpointSaver(CheckpointSaverOptions options) : options_(std::move(options)) {}

  /// For every step, before its checkpoint. Older checkpoints than are kept go once a step after
  /// the newest one has taken an update. None is taken where no gradient is finite any more
  /// (`losing`), and none follows an error or the run's end. The newest then perhaps has weights
  /// that are lost, and the older ones are what there is to go back to.
  void observe(bool losing);
  bool losing() const { return losing_; }

  /// Begins the checkpoint of `step`, once the one before is written; with `wait` it ends here,
  /// too. `best`: as is_best() said. One that cannot be written is told in the log, and is the
  /// failure() until another one is written. What has been learned so far is worth more than
  /// stopping at once.
  void save(std::int64_t step, bool best, bool wait, const CopyState& copy);

  /// Writes a checkpoint whose failure is the caller's. Returns its folder.
  runtime::Result<std::filesystem::path> save_now(std::int64_t step, const CopyState& copy);

  /// Saves the step that a failed one followed, if that is not saved yet, and reports it.
  void keep(std::int64_t step, const CopyState& copy);

  /// Takes notice of a checkpoint that has been written meanwhile.
  void poll();

  /// Waits for the checkpoint that is being written, if one is.
  void finish();

  /// Once no step follows: finish(), and wait for what is being removed. The last checkpoint has no
  /// step behind it that says that its weights are good for anything: the one before stays.
  void end();

  /// For every step: reports once that the metric which decides about the best checkpoint is not
  /// among its metrics. A metric of the validation is missed only in steps that were validated.
  void check_goal(std::int64_t step, const Metrics& metrics, bool validated);

  /// Whether a checkpoint of this step is better than all before. It is remembered as that, unless
  /// it turns out that it could not be written. For steps whose weights may be kept: those that
  /// were validated, and those whose checkpoint is due.
  bool is_best(std::int64_t step, const Metrics& metrics);

  /// Adds timing_s/save_checkpoint: what the last checkpoint took out of the steps, told once.
  void tell(Metrics& metrics);

  /// The best so far, for the state that a checkpoint has of the run, under "best".
  nlohmann::ordered_json best_state() const;

  /// Goes on from `folder`, whose state has what best_state() was. Where the run was killed before
  /// the best checkpoint was marked as that, it is now.
  void resume(const std::filesystem::path& folder, const nlohmann::ordered_json& state);

  const std::optional<std::filesystem::path>& latest() const { return latest_; }
  const runtime::Status& failure() const { return failure_; }

 private:
  runtime::Status begin(std::int64_t step, bool best, const CopyState& copy);
  runtime::Result<std::filesystem::path> take();
  void prune();
  void note_failure(const runtime::Status& failure);

  struct Best {
    BestSoFar metric;
    std::int64_t step = 0;  // of the checkpoint
  };

  CheckpointSaverOptions options_;
  Best best_;
  std::optional<Best> best_before_;  // where a checkpoint that is the best so far is being written
  bool metric_missed_ = false;
  double seconds_ = 0.0;  // until a record tells them
  bool losing_ = false;
  bool followed_ = false;  // an update has been taken since the newest one was begun
  bool unpruned_ = false;  // one has been written since older ones were removed
  runtime::Status failure_;
  std::optional<std::filesystem::path> latest_;
  std::future<void> pruning_;
  std::future<runtime::Result<std::filesystem::path>> saving_;  // of the one that is being written
};

}  // namespace rl
