#include "rl/run/profile_options.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kSteps = "global_profiler.steps";

// A list of integers from `least` on, or one of them; empty where there is none.
Result<std::set<std::int64_t>> read_integers(const Config& config, const std::string& key,
                                             std::int64_t least) {
  std::set<std::int64_t> integers;
  const nlohmann::ordered_json* value = config.find(key);
  if (value == nullptr || value->is_null()) return integers;
  const nlohmann::ordered_json items =
      value->is_array() ? *value : nlohmann::ordered_json::array({*value});
  for (const auto& item : items) {
    if (!item.is_number_integer() || item.get<std::int64_t>() < least)
      return config.out_of_range(key, "a list of integers from " + std::to_string(least) + " on");
    integers.insert(item.get<std::int64_t>());
  }
  return integers;
}

}  // namespace

Result<ProfileOptions> ProfileOptions::from_config(const Config& config,
                                                   const std::filesystem::path& run_folder) {
  ProfileOptions options;
  Result<std::set<std::int64_t>> steps = read_integers(config, kSteps, 1);
  if (!steps.ok()) return steps.status();
  options.steps = std::move(*steps);
  ConfigReader read(config);
  options.continuous = read.find_bool("global_profiler.profile_continuous_steps").value_or(false);
  const std::string folder = read.find_string("global_profiler.save_path").value_or("");
  options.folder = folder.empty() ? run_folder / "profile" : std::filesystem::path(folder);
  for (const auto& [role, section] :
       {std::pair<const char*, std::string>{"policy", "actor_rollout_ref.actor"},
        {"reference", "actor_rollout_ref.ref"},
        {"critic", "critic"}}) {
    Result<std::set<std::int64_t>> ranks = read_integers(config, section + ".profiler.ranks", 0);
    if (!ranks.ok()) return ranks.status();
    const bool left_out = !read.find_bool(section + ".profiler.enable").value_or(true);
    const bool all = read.find_bool(section + ".profiler.all_ranks").value_or(false);
    if (left_out)
      options.ranks[role] = {};
    else if (!all && !ranks->empty())
      options.ranks[role] = std::move(*ranks);
  }
  if (!read.status().ok()) return read.status();
  return options;
}

}  // namespace rl
