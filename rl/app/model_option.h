// --model and --revision, as every command that works on a model has them.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>

#include "rl/hub/hub.h"
#include "runtime/core/result.h"

namespace rl {

struct ModelOption {
  std::string model;     // a path, or a name on the hub
  std::string revision;  // of the hub; empty: the one in the name, or "main"

  /// Adds the two options and returns --model, which goes to `group` where that is given. `what`
  /// says which paths the command takes.
  CLI::Option* add_to(CLI::App& app, const std::string& what, CLI::App* group = nullptr);

  /// The path to read from. Where `model` is no path here, it is fetched from the hub first, and a
  /// line on the terminal says how far that is. Errors as locate_model.
  runtime::Result<std::filesystem::path> locate(HubNeed need) const;
};

/// The options from the environment, with the progress line of a terminal.
runtime::Result<std::filesystem::path> locate_with_progress(const std::string& model,
                                                            const std::string& revision,
                                                            HubNeed need);

}  // namespace rl
