// YAML in and out; the one file that knows yaml-cpp.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// One value of a file at its dotted path. Lists are whole values, dictionaries are taken apart.
struct YamlEntry {
  std::string key;
  nlohmann::ordered_json value;
  int line = 0;  // from 1
};

/// In file order. Plain words become values as PyYAML does it (yes/no/on/off are booleans), 1e-6 is
/// a number as in OmegaConf. A key with dots ("data.seed: 1") is a path. kNotFound: no file.
/// kInvalidArgument: not YAML, not a mapping, a key twice, deeper than 64, larger than 4 MiB or
/// 100,000 values. Messages name file and line.
runtime::Result<std::vector<YamlEntry>> read_yaml_file(const std::filesystem::path& file);
runtime::Result<std::vector<YamlEntry>> parse_yaml(const std::string& text, std::string_view name);

/// A file that is a list of values rather than a mapping. Errors as above.
runtime::Result<nlohmann::ordered_json> read_yaml_list(const std::filesystem::path& file);

/// The same tree as YAML text that reads back equal.
std::string write_yaml(const nlohmann::ordered_json& tree);

}  // namespace rl
