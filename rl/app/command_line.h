// The handling of arguments and failures that the RL commands share.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/status.h"

namespace rl {

/// Parses the command line. The exit code when there is nothing left to do: 0 after --help, 2 after
/// a mistake, which is on stderr.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

/// What an option takes: a whole number, at least `least`.
CLI::Validator whole_number_from(std::int64_t least);

/// What --reward KEY=VALUE says as an override: "rule=math" is "reward.rule=math", and "+x=1" is
/// "+reward.x=1", as Hydra has it (also ++ and ~).
std::string reward_override(const std::string& given);

/// Prints "error: <message>" behind what stdout has so far, and returns 1.
int fail(const runtime::Status& status);

}  // namespace rl
