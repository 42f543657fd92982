#include "rl/run/reward_model_path.h"

#include <utility>

#include "rl/worker/toy_model.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

void for_each_reward_model(
    ordered_json& tree,
    const std::function<void(ordered_json& name, const std::string& key)>& use) {
  const auto reward = tree.find("reward");
  if (reward == tree.end() || !reward->is_object()) return;
  if (const auto model = reward->find("reward_model");
      model != reward->end() && model->is_object() &&
      model->value("enable", ordered_json()) == true) {
    const auto path = model->find("model_path");
    if (path != model->end() && path->is_string()) use(*path, "reward.reward_model.model_path");
  }
  const auto mixture = reward->find("mixture");
  if (mixture == reward->end() || !mixture->is_array()) return;
  for (std::size_t i = 0; i < mixture->size(); ++i) {
    ordered_json& part = (*mixture)[i];
    const auto path = part.is_object() ? part.find("model") : part.end();
    if (part.is_object() && path != part.end() && path->is_string())
      use(*path, "reward.mixture[" + std::to_string(i) + "].model");
  }
}

std::vector<std::string> reward_models(const Config& config) {
  ordered_json tree = config.to_json();
  std::vector<std::string> models;
  for_each_reward_model(tree, [&](ordered_json& name, const std::string&) {
    models.push_back(name.get<std::string>());
  });
  return models;
}

Result<Config> with_reward_models_found(const Config& config) {
  ordered_json tree = config.to_json();
  Status failure;
  for_each_reward_model(tree, [&](ordered_json& name, const std::string& key) {
    if (!failure.ok()) return;
    const Result<std::filesystem::path> found = fetch_named_model(name.get<std::string>());
    std::error_code error;
    if (!found.ok())
      failure = found.status().with_context(key);
    else
      name = std::filesystem::absolute(*found, error).string();
    if (error) failure = runtime::errno_status(error.value(), key);
  });
  if (!failure.ok()) return failure;
  return config.with_tree(std::move(tree));
}

}  // namespace rl
