// The steps at which a run saves its weights: trainer.save_freq.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// Unless it is told to keep nothing, a run saves its last step.
struct SaveTimes {
  std::int64_t steps = -1;  // between two checkpoints; -1: none before the last step; 0: never one
  bool each_epoch = false;

  /// kInvalidArgument: neither a number nor one of the words that the key takes.
  static runtime::Result<SaveTimes> from_config(const Config& config);

  bool never() const { return steps == 0 && !each_epoch; }

  /// Whether there is a checkpoint before the last step.
  bool repeats() const { return steps > 0 || each_epoch; }

  /// Whether this step's weights are to be saved; `is_last`: no step follows.
  bool due(std::int64_t step, bool is_last, std::int64_t steps_an_epoch) const;

  /// For people: "every 10 steps and at the end, in FOLDER". `best`: the metric whose best
  /// checkpoint is kept besides, or empty.
  std::string text(const std::filesystem::path& folder, const std::string& best) const;
};

}  // namespace rl
