#include "rl/checkpoint/changed_keys.h"

#include <map>
#include <optional>
#include <set>

#include "rl/config/yaml.h"
#include "rl/data/json_text.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::Result;

constexpr std::size_t kToldMax = 50;
constexpr std::size_t kValueBytesMax = 200;
constexpr const char* kUnset = "not set";

using FlatConfig = std::map<std::string, ordered_json>;

std::optional<FlatConfig> flatten(const Result<std::vector<YamlEntry>>& entries) {
  if (!entries.ok()) return std::nullopt;
  FlatConfig flat;
  for (const YamlEntry& entry : *entries) flat[entry.key] = entry.value;
  return flat;
}

std::optional<FlatConfig> saved_config(const fs::path& checkpoint) {
  if (auto own = flatten(read_yaml_file(checkpoint / kSavedConfigFile))) return own;
  return flatten(read_yaml_file(checkpoint.parent_path() / kSavedConfigFile));
}

std::string value_text(const FlatConfig& of, const std::string& key) {
  const auto found = of.find(key);
  if (found == of.end()) return kUnset;
  return excerpt(
      found->second.is_string() ? found->second.get<std::string>() : found->second.dump(),
      kValueBytesMax);
}

// What says how to resume, and what Config::to_yaml() writes as null where the steps decide.
bool tells_nothing(const std::string& key, const Config& now) {
  return key == "trainer.resume_mode" || key == "trainer.resume_from_path" ||
         (key == "trainer.total_epochs" && !now.is_set(key));
}

}  // namespace

std::vector<ChangedKey> changed_keys(const fs::path& checkpoint, const Config& now) {
  const std::optional<FlatConfig> before = saved_config(checkpoint);
  const std::optional<FlatConfig> present = flatten(parse_yaml(now.to_yaml(), "configuration"));
  if (!before || !present) return {};
  std::set<std::string> keys;
  for (const FlatConfig* config : {&*before, &*present}) {
    for (const auto& [key, value] : *config) keys.insert(key);
  }
  std::vector<ChangedKey> changed;
  for (const std::string& key : keys) {
    const auto old_value = before->find(key);
    const auto new_value = present->find(key);
    const bool equal = old_value != before->end() && new_value != present->end() &&
                       old_value->second == new_value->second;
    const bool is_new = old_value == before->end() && !now.is_set(key);  // a later version's
    if (equal || is_new || tells_nothing(key, now)) continue;
    const std::string from = new_value == present->end() ? "" : " (" + now.origin(key) + ")";
    changed.push_back({key, value_text(*before, key), value_text(*present, key) + from});
  }
  return changed;
}

void tell_changed_keys(const fs::path& checkpoint, const Config& now) {
  const std::vector<ChangedKey> changed = changed_keys(checkpoint, now);
  if (changed.empty()) return;
  LOG(info, "{} key(s) are not as they were when {} was written:", changed.size(),
      checkpoint.string());
  for (std::size_t i = 0; i < std::min(changed.size(), kToldMax); ++i)
    LOG(info, "  {}", changed[i].text());
  if (changed.size() > kToldMax) LOG(info, "  and {} more", changed.size() - kToldMax);
}

}  // namespace rl
