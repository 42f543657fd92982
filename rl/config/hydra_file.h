// The YAML file that a command line means: ours by --config, verl's by Hydra's --config-path and
// --config-name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/core/result.h"

namespace rl {

struct ConfigFileOptions {
  std::string file;        // --config
  std::string hydra_path;  // --config-path
  std::string hydra_name;  // --config-name, with or without .yaml
};

/// Nothing where there is no file to read: verl's own configurations (ppo_trainer, ...) are what
/// the defaults are made of. kNotFound: a file that is named and not there; kInvalidArgument: both
/// ways at once.
runtime::Result<std::optional<std::filesystem::path>> find_config_file(
    const ConfigFileOptions& options);

}  // namespace rl
