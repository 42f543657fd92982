// Config: the merged configuration of one run. Torch-free.
// Invariants: the origin of every value is known; all `${...}` references are resolved; an unknown
// key is an error unless it was added explicitly (`+key=value`).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/config/key_table.h"
#include "runtime/core/result.h"

namespace rl {

/// The inputs of a configuration; later ones override earlier ones.
struct ConfigSources {
  std::optional<std::filesystem::path> file = {};  // YAML
  std::vector<std::string> overrides = {};         // Hydra's grammar: k=v, +k=v, ++k=v, ~k, ~k=v
  const KeyTable* keys = nullptr;                  // the command's keys; nullptr: those of `train`
};

/// The content of a Config: the merged tree, and which of its values were set.
struct ConfigValues {
  const KeyTable* keys = &train_keys();
  nlohmann::ordered_json tree = nlohmann::ordered_json::object();
  /// Keys with an origin that were set to null, which stands for the default.
  std::set<std::string, std::less<>> defaulted = {};
  /// Key as it was set -> "run.yaml:12"; a default value has no entry.
  std::map<std::string, std::string, std::less<>> origins = {};
  std::vector<std::string> notes = {};

  /// Same as the functions of Config.
  const nlohmann::ordered_json* find(std::string_view key) const;
  bool is_set(std::string_view key) const;
};

/// The defaults of verl 0.9.1 (unless rl/config/keys.inc says otherwise), overridden by a YAML
/// file, which dotted overrides override. A value: copy it freely; reading is thread-safe. Keys are
/// dotted paths: "actor_rollout_ref.actor.optim.lr".
///
/// Typed getters return kInvalidArgument for a wrong type, and kNotFound for a key that is null or
/// absent. A message is "data.train_batch_size: expected an integer, got the string 'four' (from
/// the command line)". Their `find_` variants return an empty optional instead of kNotFound. An
/// integer is accepted where a float is expected, and a float without a fraction where an integer
/// is.
class Config {
 public:
  Config() = default;
  /// Takes the values without checks; load() checks them.
  explicit Config(ConfigValues values) : values_(std::move(values)) {}

  /// Merges the sources, resolves references and checks every key that was set. kInvalidArgument
  /// names an unknown key with the nearest known ones, a value of the wrong type or a malformed
  /// override. kUnimplemented names a known key or value that would change the result and is not
  /// implemented yet. kNotFound: no such file. A key without effect adds a line to notes().
  static runtime::Result<Config> load(const ConfigSources& sources);

  /// For sending a configuration from a driver to its workers: all values, and which of them were
  /// set. is_set() of the deserialized Config gives the same answers; its origins are "the driver".
  std::string serialize() const;
  static runtime::Result<Config> deserialize(const std::string& text);

  /// The same configuration with another tree, for values that the program replaces (the name of a
  /// model by its folder, for example). Messages still name where the user set them.
  Config with_tree(nlohmann::ordered_json tree) const;

  runtime::Result<std::int64_t> get_int(std::string_view key) const;
  runtime::Result<double> get_float(std::string_view key) const;
  runtime::Result<bool> get_bool(std::string_view key) const;
  runtime::Result<std::string> get_string(std::string_view key) const;
  /// A list of strings; a single string counts as a list of one.
  runtime::Result<std::vector<std::string>> get_strings(std::string_view key) const;
  /// A list of numbers.
  runtime::Result<std::vector<double>> get_floats(std::string_view key) const;
  /// A list of anything.
  runtime::Result<nlohmann::ordered_json> get_list(std::string_view key) const;

  runtime::Result<std::optional<std::int64_t>> find_int(std::string_view key) const;
  runtime::Result<std::optional<double>> find_float(std::string_view key) const;
  runtime::Result<std::optional<bool>> find_bool(std::string_view key) const;
  runtime::Result<std::optional<std::string>> find_string(std::string_view key) const;
  runtime::Result<std::optional<std::vector<std::string>>> find_strings(std::string_view key) const;

  /// The value or sub-tree at a dotted path; nullptr if there is none (a null value gives a pointer
  /// to null).
  const nlohmann::ordered_json* find(std::string_view key) const { return values_.find(key); }

  /// Whether the user set this key, or a key below it. Setting an alias counts as setting the key
  /// that it stands for.
  bool is_set(std::string_view key) const { return values_.is_set(key); }

  /// Where a value came from, for messages: "from the defaults", "from run.yaml:12", "from the
  /// command line".
  std::string origin(std::string_view key) const;

  /// kInvalidArgument for a value that has the right type: "data.x: must be at least 1, got 0 (from
  /// the command line)".
  runtime::Status out_of_range(std::string_view key, std::string_view expected) const;

  /// The command that the configuration is for: "train", "sft".
  std::string_view command() const { return values_.keys->command(); }

  /// Messages to show the user once at the start: keys accepted without effect, older names of
  /// keys, automatic choices. One line each.
  const std::vector<std::string>& notes() const { return values_.notes; }

  const nlohmann::ordered_json& to_json() const { return values_.tree; }
  /// As YAML, for --config-print and the run's folder.
  std::string to_yaml() const;

 private:
  ConfigValues values_;
};

/// Reads many keys in a row and keeps the first failure, so that filling an options struct stays
/// one line per option:
///   ConfigReader read(config);
///   options.lr = read.get_float("actor_rollout_ref.actor.optim.lr");
///   if (!read.status().ok()) return read.status();
class ConfigReader {
 public:
  explicit ConfigReader(const Config& config)
      : config_(config) {}  // borrows; keep the config alive

  std::int64_t get_int(std::string_view key) { return keep(config_.get_int(key)); }
  double get_float(std::string_view key) { return keep(config_.get_float(key)); }
  bool get_bool(std::string_view key) { return keep(config_.get_bool(key)); }
  std::string get_string(std::string_view key) { return keep(config_.get_string(key)); }
  std::vector<std::string> get_strings(std::string_view key) {
    return keep(config_.get_strings(key));
  }
  std::vector<double> get_floats(std::string_view key) { return keep(config_.get_floats(key)); }
  std::optional<std::int64_t> find_int(std::string_view key) { return keep(config_.find_int(key)); }
  std::optional<double> find_float(std::string_view key) { return keep(config_.find_float(key)); }
  std::optional<bool> find_bool(std::string_view key) { return keep(config_.find_bool(key)); }
  std::optional<std::string> find_string(std::string_view key) {
    return keep(config_.find_string(key));
  }
  std::optional<std::vector<std::string>> find_strings(std::string_view key) {
    return keep(config_.find_strings(key));
  }

  /// Stores the options of a component that its from_config() returned, or keeps its failure.
  template <class T, class Part>
  void take(T& options, runtime::Result<Part> part) {
    if (part.ok())
      options = std::move(part).value();
    else if (status_.ok())
      status_ = part.status();
  }
  /// Keeps the failure of a check of several keys.
  void check(const runtime::Status& status) {
    if (status_.ok()) status_ = status;
  }

  /// The first failure so far. After one, the getters give default-constructed values.
  const runtime::Status& status() const { return status_; }

 private:
  template <class T>
  T keep(runtime::Result<T> result) {
    if (result.ok()) return std::move(result).value();
    if (status_.ok()) status_ = result.status();
    return T{};
  }

  const Config& config_;
  runtime::Status status_;
};

}  // namespace rl
