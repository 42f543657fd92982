#include "rl/config/config.h"

#include <cmath>
#include <utility>

#include "rl/config/config_builder.h"
#include "rl/config/judge.h"
#include "rl/config/key_path.h"
#include "rl/config/keys.h"
#include "rl/config/references.h"
#include "rl/config/yaml.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

// One overload per type that a getter reads; the kind was checked before.
void read(const ordered_json& value, std::int64_t& out) {
  out = value.is_number_float() ? static_cast<std::int64_t>(value.get<double>())
                                : value.get<std::int64_t>();
}
void read(const ordered_json& value, double& out) { out = value.get<double>(); }
void read(const ordered_json& value, bool& out) { out = value.get<bool>(); }
void read(const ordered_json& value, std::string& out) { out = value.get<std::string>(); }
void read(const ordered_json& value, std::vector<double>& out) {
  out = value.get<std::vector<double>>();
}
void read(const ordered_json& value, std::vector<std::string>& out) {
  out = value.is_string() ? std::vector<std::string>{value.get<std::string>()}
                          : value.get<std::vector<std::string>>();
}

/// Empty for a null or absent key.
template <class T>
Result<std::optional<T>> find_as(const Config& config, std::string_view key, KeyKind kind) {
  const ordered_json* value = config.find(key);
  if (value == nullptr || value->is_null()) return std::optional<T>();
  if (!matches_kind(*value, kind)) {
    return invalid_argument(std::string(key) + ": expected " + std::string(describe_kind(kind)) +
                            ", got " + describe_value(*value) + " (" + config.origin(key) + ")");
  }
  T out{};
  read(*value, out);
  return std::optional<T>(std::move(out));
}

template <class T>
Result<T> get_as(const Config& config, std::string_view key, KeyKind kind) {
  Result<std::optional<T>> found = find_as<T>(config, key, kind);
  if (!found.ok()) return found.status();
  if (!found->has_value())
    return runtime::not_found(std::string(key) + ": has no value (" + config.origin(key) +
                              "): set " + std::string(key) + "=...");
  return std::move(**found);
}

}  // namespace

Result<Config> Config::load(const ConfigSources& sources) {
  ConfigBuilder builder(sources.keys == nullptr ? train_keys() : *sources.keys);
  if (sources.file) {
    const Status status = builder.add_file(*sources.file);
    if (!status.ok()) return status;
  }
  for (const std::string& text : sources.overrides) builder.add_override(text);
  return builder.finish();
}

std::string Config::serialize() const {
  ordered_json set = ordered_json::array();
  for (const auto& [key, origin] : values_.origins) {
    if (!values_.defaulted.contains(key)) set.push_back(key);
  }
  return ordered_json{{"values", values_.tree}, {"set", std::move(set)}}.dump();
}

Result<Config> Config::deserialize(const std::string& text) {
  const auto parsed = runtime::parse_json<ordered_json>(text);
  if (!parsed.is_object() || !parsed.contains("values") || !parsed["values"].is_object() ||
      !parsed.contains("set") || !parsed["set"].is_array())
    return invalid_argument("this is no configuration of a driver's (Config::serialize)");
  ConfigValues values;
  values.tree = parsed["values"];
  for (const ordered_json& key : parsed["set"]) {
    if (key.is_string()) values.origins[key.get<std::string>()] = "the driver";
  }
  return Config(std::move(values));
}

Config Config::with_tree(ordered_json tree) const {
  Config changed = *this;
  changed.values_.tree = std::move(tree);
  return changed;
}

const ordered_json* ConfigValues::find(std::string_view key) const { return find_place(tree, key); }

bool ConfigValues::is_set(std::string_view key) const {
  const std::string name = keys->canonical(key);
  const auto at = origins.lower_bound(name);
  if (at != origins.end() && at->first == name)
    return find(name) != nullptr &&
           !defaulted.contains(
               name);  // a deleted key has an origin, too, and one that is null for its default
  const auto below = origins.lower_bound(name + ".");
  return below != origins.end() && below->first.starts_with(name + ".");
}

runtime::Status Config::out_of_range(std::string_view key, std::string_view expected) const {
  const nlohmann::ordered_json* value = find(key);
  return runtime::invalid_argument(std::string(key) + ": must be " + std::string(expected) +
                                   ", got " + (value != nullptr ? value->dump() : "nothing") +
                                   " (" + origin(key) + ")");
}

std::string Config::origin(std::string_view key) const {
  std::string name = values_.keys->canonical(key);
  const std::string whole = name;
  while (true) {  // a value inside a list or dictionary came with what encloses it
    const auto at = values_.origins.find(name);
    if (at != values_.origins.end() && values_.defaulted.contains(name)) break;
    if (at != values_.origins.end()) return "from " + at->second;
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) break;
    name.resize(dot);
  }
  // Many defaults are the value of another key, which the user may have set.
  const KeyInfo* row = values_.keys->find(whole);
  const std::optional<std::string> source =
      row != nullptr ? referred_key(row->default_text, whole) : std::nullopt;
  return source && is_set(*source) ? "as " + *source + ", " + origin(*source) : "from the defaults";
}

std::string Config::to_yaml() const {
  constexpr const char* kEpochs = "trainer.total_epochs";
  if (find(kEpochs) == nullptr || is_set(kEpochs) || !is_set("trainer.total_training_steps"))
    return write_yaml(values_.tree);
  nlohmann::ordered_json tree = values_.tree;
  tree["trainer"]["total_epochs"] =
      nullptr;  // as a number it would end the run that is read from this
  return write_yaml(tree);
}

Result<std::int64_t> Config::get_int(std::string_view key) const {
  return get_as<std::int64_t>(*this, key, KeyKind::kInt);
}
Result<double> Config::get_float(std::string_view key) const {
  return get_as<double>(*this, key, KeyKind::kFloat);
}
Result<bool> Config::get_bool(std::string_view key) const {
  return get_as<bool>(*this, key, KeyKind::kBool);
}
Result<std::string> Config::get_string(std::string_view key) const {
  return get_as<std::string>(*this, key, KeyKind::kString);
}
Result<std::vector<std::string>> Config::get_strings(std::string_view key) const {
  return get_as<std::vector<std::string>>(*this, key, KeyKind::kStrings);
}
Result<std::vector<double>> Config::get_floats(std::string_view key) const {
  return get_as<std::vector<double>>(*this, key, KeyKind::kFloats);
}

Result<ordered_json> Config::get_list(std::string_view key) const {
  const ordered_json* value = find(key);
  if (value == nullptr || value->is_null())
    return runtime::not_found(std::string(key) + ": has no value (" + origin(key) + ")");
  if (!value->is_array())
    return invalid_argument(std::string(key) + ": expected a list, got " + describe_value(*value) +
                            " (" + origin(key) + ")");
  return *value;
}

Result<std::optional<std::int64_t>> Config::find_int(std::string_view key) const {
  return find_as<std::int64_t>(*this, key, KeyKind::kInt);
}
Result<std::optional<double>> Config::find_float(std::string_view key) const {
  return find_as<double>(*this, key, KeyKind::kFloat);
}
Result<std::optional<bool>> Config::find_bool(std::string_view key) const {
  return find_as<bool>(*this, key, KeyKind::kBool);
}
Result<std::optional<std::string>> Config::find_string(std::string_view key) const {
  return find_as<std::string>(*this, key, KeyKind::kString);
}
Result<std::optional<std::vector<std::string>>> Config::find_strings(std::string_view key) const {
  return find_as<std::vector<std::string>>(*this, key, KeyKind::kStrings);
}

}  // namespace rl
