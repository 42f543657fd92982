// Stage: the step that a training run repeats. TrainingRun has the loop around it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/checkpoint/checkpoint_saver.h"
#include "rl/metrics/metrics.h"
#include "rl/run/alarms.h"
#include "rl/run/step_profiler.h"
#include "runtime/core/result.h"

namespace rl {

/// The result of a step.
struct StageStep {
  Metrics metrics;
  bool diverging = false;         // some weights had no update in it, since no gradient was finite
  runtime::Status diverged = {};  // why no checkpoint of these weights is useful
  runtime::Status broken = {};    // why the run ends with this step, which has no record
};

/// Where a run is, for its saved state.
struct RunProgress {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  nlohmann::ordered_json early_stop = {};
  nlohmann::ordered_json best = {};
};

/// One kind of training: its data, its workers and their updates. A resource; one thread at a time.
class Stage {
 public:
  virtual ~Stage() = default;

  /// What happens once, before the first step, and is part of no step's time. Later calls do
  /// nothing.
  virtual runtime::Status begin() { return {}; }

  /// The workers, for a profile.
  virtual std::vector<ProfiledGroup> profiled_groups() const = 0;

  /// Takes a step, counted from 1.
  virtual runtime::Result<StageStep> step(std::int64_t number) = 0;

  /// Whether the state before a step that failed is still what a run can continue from.
  virtual bool can_repeat_step() const = 0;

  /// The epoch of the last batch, from 0.
  virtual std::int64_t epoch() const = 0;

  /// Whether a validation follows this step.
  virtual bool validates_after(std::int64_t step, std::int64_t total_steps) const = 0;
  virtual runtime::Result<Metrics> validate_after(std::int64_t step) = 0;

  /// What there is to tell after a step, by its metrics; adds to them which alarms went off.
  virtual std::vector<std::string> observe(Metrics& metrics) = 0;
  virtual AlarmAction alarm_action() const = 0;

  /// The state of the run as a checkpoint has it (kRunStateFile).
  virtual nlohmann::ordered_json state(const RunProgress& progress) const = 0;

  /// Copies what a checkpoint has; `async`: during the next steps, else without a copy before
  /// them.
  virtual runtime::Result<CheckpointSaver::WriteFiles> copy_state(
      bool async, nlohmann::ordered_json state) const = 0;

  /// Continues from a checkpoint whose state is `state`. Returns its step.
  virtual runtime::Result<std::int64_t> restore(const std::filesystem::path& folder,
                                                const nlohmann::ordered_json& state) = 0;
};

}  // namespace rl
