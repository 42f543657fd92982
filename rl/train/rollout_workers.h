// Whether samples are drawn by workers of their own, beside training.
#pragma once

#include <cstdint>
#include <optional>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// Workers that only draw samples: while the policy trains on one step's samples they draw the next step's, by the weights of before the update ("one step off").
/// Noukhovitch et al. 2024, arXiv:2410.18252.
struct RolloutWorkersOptions {
  std::int64_t nodes = 1;
  std::int64_t per_node = 1;

  std::int64_t size() const { return nodes * per_node; }

  /// From `actor_rollout_ref.hybrid_engine` and `rollout.*`, beside `policy_workers`. Nothing: the policy's workers draw. kInvalidArgument: a value out of range, or what does not
  /// go together, by key.
  static runtime::Result<std::optional<RolloutWorkersOptions>> from_config(const Config& config, std::int64_t policy_workers);
};

}  // namespace rl
