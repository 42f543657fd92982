// The meaning of a role's zero_level.
#pragma once

#include <optional>
#include <string>

#include "rl/config/config.h"
#include "rl/mesh/zero_level.h"
#include "rl/optim/learner.h"
#include "runtime/core/result.h"

namespace rl {

/// The section with the keys of a role's sharding: "critic.fsdp".
std::string sharding_section(const std::string& role);

/// The key: "critic.fsdp.zero_level".
std::string zero_level_key(const std::string& role);

/// trainer.device, where that is another than the CPU.
runtime::Result<std::optional<std::string>> training_device(const Config& config);

/// Whether it is left to the memory plan; see choose_zero_levels().
bool is_zero_level_auto(const Config& config, const std::string& role);

/// Whether it is 3, whatever else keeps weights whole.
bool is_zero_level_three(const Config& config, const std::string& role);

/// For people: "critic.fsdp.zero_level=auto, which is 0", of a configuration whose levels are
/// settled.
std::string zero_level_text(const Config& config, const std::string& role);

/// The level; of auto, which is not settled, kNone; of 3 where each worker keeps all weights
/// (fsdp_size=1), kGradients. kInvalidArgument: one that does not go with trainer.device.
runtime::Result<ZeroLevel> zero_level_from_config(const Config& config, const std::string& role);

}  // namespace rl
