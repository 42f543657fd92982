// The number of steps of a run.
#pragma once

#include <cstdint>
#include <optional>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// trainer.total_training_steps and trainer.total_epochs: both end a run where both are set, as in
/// verl. The schedule of the learning rate is over the steps that were asked for, even where the
/// epochs end it before.
struct RunLength {
  std::optional<std::int64_t> steps = {};
  std::int64_t epochs = 1;
  bool epochs_are_set = false;

  static runtime::Result<RunLength> from_config(const Config& config);

  /// The number of steps that the schedule is over.
  std::int64_t scheduled(std::int64_t steps_an_epoch) const;
  /// The run's last step.
  std::int64_t last(std::int64_t steps_an_epoch) const;
};

}  // namespace rl
