// Partial rollouts of a run: which prompts are in progress, how old they may become, and what a
// checkpoint keeps of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "rl/config/config.h"
#include "rl/rollout/partial_prompt.h"
#include "runtime/core/result.h"

namespace rl {

/// More prompts are in progress than a step trains on. It takes those that finish first, and the
/// others go on with the weights that it makes. Long responses then hold up no step ("partial
/// rollouts", Kimi Team 2025, arXiv:2501.12599; APRIL, Zhou et al. 2025, arXiv:2509.18521; verl's
/// colocate_async).
struct PartialRolloutOptions {
  std::int64_t steps_ahead = 1;  // batches that are in progress besides the one that is wanted
  std::optional<std::int64_t> age_max =
      8;  // steps from the one that began a prompt to the one that trains on it, both counted
  bool waits_for_old = false;  // for what would become older; else it starts again

  /// From `trainer.v1.*`. Nothing: trainer_mode is another. kInvalidArgument: a value out of range,
  /// or what does not go together, by key.
  static runtime::Result<std::optional<PartialRolloutOptions>> from_config(const Config& config);
};

/// A prompt in progress, as the controller knows it.
struct PartialTask {
  std::int64_t step = 0;  // that began it
  RewardTask task;

  auto fields() { return std::tie(step, task); }
  bool operator==(const PartialTask&) const = default;
};

/// The plan for a worker that is to finish `prompts` of its prompts in `step`. What it has on its
/// way (oldest first) comes before fresh ones.
PartialPlan plan_partial(const std::vector<PartialTask>& partial, std::int64_t prompts,
                         std::int64_t step, const PartialRolloutOptions& options);

/// What a checkpoint keeps. Prompts by worker, each with its task.
struct SavedRollouts {
  std::int64_t steps_begun = 0;  // steps whose prompts have been begun
  std::vector<std::vector<PartialTask>> tasks;
  std::vector<std::vector<PartialPrompt>> prompts;

  auto fields() { return std::tie(steps_begun, tasks, prompts); }
  bool operator==(const SavedRollouts&) const = default;
};

/// As bytes, and back. kInvalidArgument: not what encode_rollouts() wrote, sizes that do not fit
/// together.
std::string encode_rollouts(const SavedRollouts& rollouts);
runtime::Result<SavedRollouts> decode_rollouts(std::string_view bytes);

/// The same prompts for `shares.size()` workers, worker w having shares[w] of each batch. As they
/// were where there are as many workers and each has what it needs; else oldest first in turns.
/// kInvalidArgument: they are no whole number of batches.
runtime::Result<SavedRollouts> deal_rollouts(SavedRollouts rollouts,
                                             const std::vector<std::int64_t>& shares);

}  // namespace rl
