// ConfigBuilder: merges the sources of a Config in order and judges the result.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rl/config/check.h"
#include "rl/config/config.h"
#include "rl/config/judge.h"
#include "rl/config/key_names.h"
#include "rl/config/override.h"

namespace rl {

/// Starts from the defaults; add sources in order of rising priority, then finish once.
class ConfigBuilder {
 public:
  explicit ConfigBuilder(const KeyTable& keys = train_keys());

  /// Errors: the file cannot be read, or is no YAML. What is wrong with a key waits for finish().
  runtime::Status add_file(const std::filesystem::path& file);
  void add_override(std::string_view text);

  /// Resolves references and judges every key that was set; all complaints are in one message, a
  /// line each.
  runtime::Result<Config> finish();

  /// Instead of finish(): what each key that was set means, with all complaints.
  ConfigCheck check();

 private:
  /// What was judged of one key that was set.
  struct Judged {
    std::string key;
    const KeyInfo* info;
    Judgement judgement;
    bool is_default;  // the value
  };
  /// Something that cannot be merged: `text` is as it was written, `message` has the origin in it.
  struct Complaint {
    std::string text;
    std::string origin;
    runtime::Status status;
  };

  runtime::Status apply(const Override& change);
  runtime::Status remove(const Override& change);
  /// Sets a value, taking dictionaries apart; `added` permits unknown keys.
  runtime::Status set(const std::string& written_key, const nlohmann::ordered_json& value,
                      const std::string& origin, bool added);
  runtime::Status check_known(const std::string& written_key, const std::string& key, bool is_map,
                              bool added);
  void complain_of_contradictions();
  std::vector<Judged> judge_keys();
  runtime::Status judge();
  std::string choose_estimator();
  /// Resolves the references, and the rates that an adapter's defaults are.
  runtime::Status resolve();
  void note_choices(const std::string& estimator);

  const KeyTable& keys_;
  ConfigValues values_;
  std::vector<std::string> unknown_;  // added with '+'
  std::vector<std::string> rate_notes_;
  std::vector<Complaint> complaints_;
  std::map<std::string, Complaint> contradictions_;  // of a key's names in a file
  std::vector<KeyCheck> group_choices_;
  KeyNames names_;
};

}  // namespace rl
