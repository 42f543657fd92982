// The number of workers that keep a role's weights once together (hybrid sharding), as a
// configuration says it.
#pragma once

#include <cstdint>
#include <string>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// The key: "critic.fsdp.fsdp_size".
std::string fsdp_size_key(const std::string& role);

/// As UnitWeightsOptions::shard_ranks: 0 where the key is -1. kInvalidArgument: another number
/// below 1.
runtime::Result<std::int64_t> shard_ranks_from_config(const Config& config,
                                                      const std::string& role);

/// kInvalidArgument names the key: its number does not divide that of the workers.
runtime::Status check_fsdp_size(const Config& config, const std::string& role,
                                std::int64_t workers);

/// What the key means for that number of workers, for people: "critic: 2 groups of 2 workers; each
/// group keeps the weights once". Empty: it is not set, or they are one group. Of a configuration
/// whose levels are settled.
std::string fsdp_size_text(const Config& config, const std::string& role, std::int64_t workers);

}  // namespace rl
