// FrozenSharding: the division of an untrained role's weights over its workers, as a configuration
// has it.
#pragma once

#include <cstdint>
#include <string>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// Roles that are not trained, next to kReferenceRole (whose keys are those of teachers, too).
inline constexpr const char* kRewardModelRole = "reward_model.model";
inline constexpr const char* kStageReferenceRole = "preference.reference";  // of dpo and kto

/// ZeRO-3, or whole weights on each worker.
struct FrozenSharding {
  bool shards = false;
  std::int64_t shard_ranks = 0;  // see UnitWeightsOptions

  bool operator==(const FrozenSharding&) const = default;
};

/// `<role>.fsdp_config.zero_level` and `.fsdp_size`; of kStageReferenceRole
/// `preference.reference_zero_level` and `engine.fsdp_size`. Of auto, which is not settled, and
/// of groups of one worker: whole weights. kInvalidArgument names the key: weights that are to be
/// kept once on another device than the CPU.
runtime::Result<FrozenSharding> frozen_sharding_from_config(const Config& config,
                                                            const std::string& role);

/// What that means for N workers, in a line for people; empty: each has whole weights, and no
/// key says otherwise.
std::string frozen_sharding_text(const Config& config, const std::string& role,
                                 std::int64_t workers);

}  // namespace rl
