// Whether samples are drawn by workers of their own, beside training, and how far ahead.
#pragma once

#include <cstdint>
#include <optional>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// Workers that only draw samples: while the policy trains on one step's samples they draw those of
/// the steps after it, by weights that are `steps_ahead` updates old: 1 is "one step off"
/// (Noukhovitch et al. 2024, arXiv:2410.18252), more is asynchronous training with bounded
/// staleness (AReaL, Fu et al. 2025, arXiv:2505.24298).
struct RolloutWorkersOptions {
  std::int64_t nodes = 1;
  std::int64_t per_node = 1;
  std::int64_t steps_ahead = 1;  // batches that are under way or wait; as many updates lie between
                                 // the weights that drew a sample and those that it trains

  std::int64_t size() const { return nodes * per_node; }

  /// From `actor_rollout_ref.hybrid_engine` and `rollout.*`, or verl's
  /// `trainer.v1.trainer_mode=separate_async`, beside `policy_workers`. Nothing: the policy's
  /// workers draw. kInvalidArgument: a value out of range, or what does not go together, by key.
  static runtime::Result<std::optional<RolloutWorkersOptions>> from_config(
      const Config& config, std::int64_t policy_workers);
};

}  // namespace rl
