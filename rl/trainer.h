// Trainer: reinforcement learning as one object. A facade: the parts of a run are in rl/run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace runtime {
class Runtime;
}  // namespace runtime

namespace rl {

class Config;
struct SampleText;
struct TrainerOptions;

/// Reinforcement learning of a policy from the scores of its responses, by the algorithms that
/// docs/guide/algorithms.md lists. It has a policy and a reward group, and a reference where the
/// objective needs one. With PPO there is a critic, which is its own group or a head on the policy.
///
///   rl::Trainer trainer(config);
///   trainer.on_step([](const rl::StepRecord& record) { ... });
///   runtime::Status status = trainer.fit(100);
///
/// A resource; one thread at a time. Borrows the runtime, which must have the classes of
/// register_training_actors().
class Trainer {
 public:
  /// Reads the data, finds the checkpoint to resume from, and starts the workers with it.
  /// Everything that can be found wrong before the first step is found here. Errors name the key,
  /// file or row, and the cure.
  static runtime::Result<std::unique_ptr<Trainer>> create(runtime::Runtime& runtime,
                                                          const Config& config);

  /// As create(), on training_runtime(), with the first call of another method, which returns what
  /// create() would have.
  explicit Trainer(const Config& config);
  ~Trainer();

  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains up to total_steps(), with the warm start, validation and checkpoints that the
  /// configuration asks for. Unless trainer.save_freq=0, the last step is saved, and where one
  /// fails before it has updated anything, or its validation does, what was trained before.
  /// Checkpoints are written while the next steps are taken; the last is waited for. One that
  /// cannot be written does not stop the training: fit() continues and returns that failure at the
  /// end.
  runtime::Status fit();

  /// As fit(), but for at most N steps; fit() continues.
  runtime::Status fit(std::int64_t steps);

  /// One step; what fit() repeats. Metrics of it, timings included. kTaskFailed: it was the tenth
  /// in a row without a finite gradient.
  runtime::Result<Metrics> step();

  /// Greedy (or as `rollout.val_kwargs` say) answers to all validation rows: val-core/<data
  /// source>/reward/mean@n. Keeps the first samples as texts if a table of them is wanted.
  /// kNotFound: no validation data.
  runtime::Result<Metrics> validate();

  /// Writes a checkpoint of the present step below options().folder, and waits for it. Returns its
  /// folder.
  runtime::Result<std::filesystem::path> save_checkpoint();

  /// Continues from `folder`, a global_step_N. kInvalidArgument: damaged, or of other data or
  /// another model.
  runtime::Status load_checkpoint(const std::filesystem::path& folder);

  /// Writes what a full disk held back of metrics and samples. Errors: why some of it still cannot
  /// be written; it is kept for another try.
  runtime::Status flush_logs();

  /// Called after every step, warm start included.
  void on_step(std::function<void(const StepRecord&)> callback);

  /// For a call-back: no step is to follow the one just reported. fit() saves it, unless
  /// trainer.save_freq=0, and returns.
  void stop();

  const TrainerOptions& options() const;
  const MetricLogger& log() const;
  std::int64_t steps_done() const;
  std::int64_t total_steps() const;
  std::optional<std::filesystem::path> latest_checkpoint() const;

  /// What alarms have told in this process, with their steps.
  const std::vector<std::string>& alarms() const;

  /// Why `trainer.early_stop` ended the training, if it did, in this process or in the one that
  /// wrote the checkpoint it continues from.
  std::optional<std::string> stopped_early() const;

  /// Samples of the first and of the last validation; empty unless `trainer.log_val_generations`
  /// asks for some.
  const std::vector<SampleText>& first_samples() const;
  const std::vector<SampleText>& last_samples() const;

 private:
  struct Impl;

  explicit Trainer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace rl
