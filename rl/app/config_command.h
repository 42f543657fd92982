// The steps that all commands share which train from a configuration: their command line, from
// --help to --dry-run.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>

#include "rl/config/config.h"
#include "rl/config/key_table.h"
#include "rl/run/memory_fit.h"
#include "runtime/runtime.h"

namespace rl {

struct ConfigCommand {
  const KeyTable& keys;     // whose command() is the command's name
  std::string description;  // "Learns from demonstrations."
  std::string key_names;    // whose names the keys have: "verl's names"
  std::string example;      // a command line
  // Starts nothing. The nodes are those that it would run on.
  std::function<runtime::Status(const Config& config, std::ostream& out,
                                std::span<const NodeRoom> nodes)>
      dry_run;
  std::function<runtime::Status(runtime::Runtime& started, const Config& config)> run;
};

/// argv[0] is the command's name. `runtime` must have the classes of the command's actors and not
/// be started yet: a configuration that is wrong starts no cluster. Exit codes: 0 done, 1 failed
/// (said on stderr), 2 usage.
int run_config_command(runtime::Runtime& runtime, const ConfigCommand& command, int argc,
                       char** argv);

}  // namespace rl
