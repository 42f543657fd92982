// Mistakes in a command line of the program `starling`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace placement {

/// The innermost command that was named.
const CLI::App& named_command(const CLI::App& app);

/// In words that name the mistake, and the nearest word that would have been right.
std::string usage_mistake(const CLI::App& app, const CLI::ParseError& error);

}  // namespace placement
