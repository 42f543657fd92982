// What the commands of the stages do alike: their command line, and the run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rl/config/key_table.h"
#include "rl/stage/stage.h"
#include "runtime/runtime.h"

namespace rl {

struct StageCommand {
  const KeyTable& keys;     // whose command() is the command's name
  std::string description;  // "Learns from demonstrations: ..."
  std::string example;      // a command line that works as it stands
  std::function<std::unique_ptr<Stage>()> make;
  bool generates = true;    // what it trains writes text
};

/// argv[0] is the command's name. `runtime` must have the classes of register_stage_actors() and not be started yet: a configuration that is wrong
/// starts no cluster. Exit codes: 0 done, 1 failed (said on stderr), 2 usage.
int run_stage_command(runtime::Runtime& runtime, const StageCommand& command, int argc, char** argv);

/// What `--dry-run` says of a stage: batches, steps and memory. Errors: what the run would find wrong with the configuration. Starts nothing.
runtime::Status stage_dry_run(const Config& config, Stage& stage, std::ostream& out);

}  // namespace rl
