// ConfigBuilder: merges the sources of a Config in order and judges the result.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rl/config/config.h"
#include "rl/config/override.h"

namespace rl {

/// Starts from the defaults; add sources in order of rising priority, then finish once.
class ConfigBuilder {
 public:
  ConfigBuilder();

  /// Errors: the file cannot be read, or is no YAML. What is wrong with a key waits for finish().
  runtime::Status add_file(const std::filesystem::path& file);
  void add_override(std::string_view text);

  /// Resolves references and judges every key that was set; all complaints are in one message, a line each.
  runtime::Result<Config> finish();

 private:
  runtime::Status apply(const Override& change);
  runtime::Status remove(const Override& change);
  /// Sets a value, taking dictionaries apart; `added` permits keys that nobody knows.
  runtime::Status set(const std::string& written_key, const nlohmann::ordered_json& value, const std::string& origin, bool added);
  runtime::Status check_known(const std::string& written_key, const std::string& key, bool is_map, bool added);
  runtime::Status judge();
  void complain(const runtime::Status& status);
  void note_choices();

  Config config_;
  std::vector<std::string> unknown_;  // added with '+'
  runtime::Status complaints_;        // about keys, a line each
};

}  // namespace rl
