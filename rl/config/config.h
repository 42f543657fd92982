// Config: the merged configuration of one run. Torch-free.
// Invariants: every value knows where it came from; all `${...}` references are resolved; a key
// that nobody knows cannot get in unless it was added on purpose (`+key=value`).
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

/// What a configuration is made from; later parts win.
struct ConfigSources {
  std::optional<std::filesystem::path> file = {};  // YAML
  std::vector<std::string> overrides = {};         // Hydra's grammar: k=v, +k=v, ++k=v, ~k, ~k=v
  const KeyTable* keys = nullptr;  // of the command that they are for; nullptr: train's
};

/// What a Config is made of: the merged tree, and what was set of it.
struct ConfigValues {
  const KeyTable* keys = &train_keys();
  nlohmann::ordered_json tree = nlohmann::ordered_json::object();
  /// Of those with an origin: null was written, which stands for the default.
  std::set<std::string, std::less<>> defaulted = {};
  /// Path as set -> "run.yaml:12"; the defaults have no entry.
  std::map<std::string, std::string, std::less<>> origins = {};
  std::vector<std::string> notes = {};

  /// As Config's.
  const nlohmann::ordered_json* find(std::string_view key) const;
  bool is_set(std::string_view key) const;
};

/// The defaults of verl 0.9.1 (where rl/config/keys.inc does not say otherwise), below a YAML file,
/// below dotted overrides. A value: copy it freely; reading is thread-safe. Keys are dotted paths:
/// "actor_rollout_ref.actor.optim.lr".
///
/// Typed getters give kInvalidArgument for a wrong type ("data.train_batch_size: expected an
/// integer, got the string 'four' (from the command line)") and kNotFound for a key that is null or
/// absent; their `find_` twins give an empty optional there instead. An integer is accepted where a
/// float is expected, and a float without a fraction where an integer is.
class Config {
 public:
  Config() = default;
  /// Takes them as they are: load() makes them by the rules.
  explicit Config(ConfigValues values) : values_(std::move(values)) {}

  /// Merges, resolves references, and judges every key that was set: kInvalidArgument names an
  /// unknown key with its nearest known ones, a value of the wrong type or a malformed override;
  /// kUnimplemented names a key or value that is known but would change the result and is not built
  /// yet; kNotFound: no such file. What is accepted without effect becomes a line of notes().
  static runtime::Result<Config> load(const ConfigSources& sources);

  /// How a driver hands its configuration to its workers: all values, and which of them were set.
  /// deserialize() gives one that answers is_set() alike; origins are "the driver".
  std::string serialize() const;
  static runtime::Result<Config> deserialize(const std::string& text);

  /// The same configuration with values that the program changed in its tree (a model's name became
  /// its folder, say): messages go on naming where the user set them.
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

  /// The value or sub-tree at a dotted path; nullptr where there is none (a null value gives a
  /// pointer to null).
  const nlohmann::ordered_json* find(std::string_view key) const { return values_.find(key); }

  /// Whether the user set this key, or something below it, rather than the defaults. Aliases count
  /// for what they stand for.
  bool is_set(std::string_view key) const { return values_.is_set(key); }

  /// Where a value came from, for messages: "from the defaults", "from run.yaml:12", "from the
  /// command line".
  std::string origin(std::string_view key) const;

  /// kInvalidArgument for a value that has the right type: "data.x: must be at least 1, got 0 (from
  /// the command line)".
  runtime::Status out_of_range(std::string_view key, std::string_view expected) const;

  /// The command whose keys these are: "train", "sft".
  std::string_view command() const { return values_.keys->command(); }

  /// What a user should be told once at the start: keys accepted without effect, older names,
  /// choices made for them. One line each.
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

  /// Takes the options of a part, which were read by its from_config().
  template <class T, class Part>
  void take(T& options, runtime::Result<Part> part) {
    if (part.ok())
      options = std::move(part).value();
    else if (status_.ok())
      status_ = part.status();
  }
  /// Keeps what a check of several keys says.
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
