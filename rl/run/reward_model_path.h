// Reward models by the names that a configuration has for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// What scores by a model: `reward.reward_model.model_path` where it is enabled, and each `model`
/// of `reward.mixture`. As they stand there.
std::vector<std::string> reward_models(const Config& config);

/// The configuration with these as absolute paths; what is only on the hub is fetched. Errors:
/// those of locate_model, with the key.
runtime::Result<Config> with_reward_models_found(const Config& config);

}  // namespace rl
