#include "rl/app/cached_models.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "rl/config/key_path.h"
#include "rl/hub/hub.h"
#include "rl/run/reward_model_path.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

using runtime::Result;

/// Where the cache has what is a name on the hub and no path here; nullopt: it is something else.
std::optional<Result<std::filesystem::path>> in_cache(const std::string& name,
                                                      const HubOptions& hub) {
  std::error_code ignored;
  if (name == kToyModelName || std::filesystem::exists(name, ignored) || !HubName::parse(name).ok())
    return std::nullopt;
  return locate_cached_model(name, HubNeed::kModel, hub);
}

}  // namespace

bool CachedModels::lacks(const std::string& key) const {
  return std::find(missing.begin(), missing.end(), key) != missing.end();
}

runtime::Status CachedModels::check() const {
  if (unreachable.empty()) return {};
  std::string lines;
  for (const std::string& line : unreachable) lines += (lines.empty() ? "" : "\n") + line;
  return runtime::not_found(std::move(lines));
}

CachedModels find_cached_models(const Config& config, std::span<const std::string> keys) {
  const HubOptions hub = HubOptions::from_environment();
  CachedModels models;
  const auto find = [&](const std::string& key, nlohmann::ordered_json& name) {
    const auto found = in_cache(name.get<std::string>(), hub);
    if (!found) return;
    if (found->ok()) {
      name = (*found)->string();
      return;
    }
    models.missing.push_back(key);
    const std::string why = key + ": " + found->status().message();
    if (hub.offline)
      models.unreachable.push_back(why + "; HF_HUB_OFFLINE keeps a run from fetching it");
    else
      models.notes.push_back(why + "; a run fetches it, a dry run does not");
  };
  nlohmann::ordered_json tree = config.to_json();
  for (const std::string& key : keys) {
    const nlohmann::ordered_json* given = config.find(key);
    nlohmann::ordered_json* place =
        given != nullptr && given->is_string() ? make_place(tree, key) : nullptr;
    if (place != nullptr) find(key, *place);
  }
  for_each_reward_model(tree, [&](nlohmann::ordered_json& name, const std::string& key) {
    if (name.is_string()) find(key, name);
  });
  models.config = config.with_tree(std::move(tree));
  return models;
}

}  // namespace rl
