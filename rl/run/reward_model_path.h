// Reward models by the names that a configuration has for them.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// What scores by a model: `reward.reward_model.model_path` where it is enabled, and each `model`
/// of `reward.mixture`. As they stand there.
std::vector<std::string> reward_models(const Config& config);

/// Calls `use` with each of these in a configuration's tree, and the key that it stands at.
void for_each_reward_model(
    nlohmann::ordered_json& tree,
    const std::function<void(nlohmann::ordered_json& name, const std::string& key)>& use);

/// The configuration with these as absolute paths; what is only on the hub is fetched. Errors:
/// those of locate_model, with the key.
runtime::Result<Config> with_reward_models_found(const Config& config);

}  // namespace rl
