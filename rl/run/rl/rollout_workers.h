// Separate rollout workers: how many, and how many steps ahead of training they generate.
#pragma once

#include <cstdint>
#include <optional>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// Workers that only generate samples: while the policy trains on one step's they generate those of
/// the steps after it. Their weights are `steps_ahead` updates old. 1 is "one step off"
/// (Noukhovitch et al. 2024, arXiv:2410.18252). More is asynchronous training with bounded
/// staleness (AReaL, Fu et al. 2025, arXiv:2505.24298).
struct RolloutWorkersOptions {
  std::int64_t nodes = 1;
  std::int64_t per_node = 1;
  std::int64_t steps_ahead = 1;  // batches that are under way or wait; as many updates lie between
                                 // the weights that generated a sample and those that it trains

  std::int64_t size() const { return nodes * per_node; }

  /// From `actor_rollout_ref.hybrid_engine` and `rollout.*`, or verl's
  /// `trainer.v1.trainer_mode=separate_async`, next to `policy_workers`. Nothing: the policy's
  /// workers generate. kInvalidArgument: a value out of range, or what does not go together, by
  /// key.
  static runtime::Result<std::optional<RolloutWorkersOptions>> from_config(
      const Config& config, std::int64_t policy_workers);
};

}  // namespace rl
