// What the RL commands do alike with their arguments and their failures.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>

#include "runtime/core/status.h"

namespace rl {

/// Parses the command line. The exit code when there is nothing left to do: 0 after --help, 2 after
/// a mistake, which is on stderr.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

/// What an option takes: a whole number, at least `least`.
CLI::Validator whole_number_from(std::int64_t least);

/// Prints "error: <message>" behind what stdout has so far, and returns 1.
int fail(const runtime::Status& status);

}  // namespace rl
