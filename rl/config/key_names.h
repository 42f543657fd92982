// KeyNames: the choice between the values of a key that is set by several of its names.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/config/key_table.h"
#include "runtime/core/result.h"

namespace rl {

/// Is shown every value in its turn. Of two names in one file neither comes first: the value that
/// is not the default counts. On a command line the later one counts, as with one name. Values of
/// an earlier source count for nothing.
class KeyNames {
 public:
  enum class Source { kFile, kCommandLine };

  /// Borrows the table.
  explicit KeyNames(const KeyTable& keys) : keys_(keys) {}

  /// The values that are shown from now on are of another source.
  void begin(Source source);

  /// Whether `value`, which `key` gets by the name `written`, replaces what it has.
  /// kInvalidArgument: two names of one file have two values, and neither is the default.
  runtime::Result<bool> replaces(const std::string& key, const std::string& written,
                                 const nlohmann::ordered_json& value);

  /// The key was deleted.
  void forget(const std::string& key);

  /// The name that the value came by.
  const std::string& name_of(const std::string& key) const;

  /// A line for each value of a command line that another name replaced there.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Given {
    std::string name;
    nlohmann::ordered_json value;
    int source = 0;
  };

  bool says_nothing(const std::string& key, const nlohmann::ordered_json& value);

  const KeyTable& keys_;
  Source kind_ = Source::kCommandLine;
  int source_ = 0;
  std::map<std::string, Given> given_;
  std::optional<nlohmann::ordered_json> defaults_;  // resolved
  std::vector<std::string> notes_;
};

}  // namespace rl
