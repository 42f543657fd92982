// The steps that the commands of the stages share.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "rl/config/key_table.h"
#include "rl/run/data_stage.h"
#include "rl/run/memory_fit.h"
#include "runtime/runtime.h"

namespace rl {

struct StageCommand {
  const KeyTable& keys;     // whose command() is the command's name
  std::string description;  // "Learns from demonstrations: ..."
  std::string example;      // a command line that works as it stands
  std::function<std::unique_ptr<DataStage>()> make;
  bool generates = true;  // what it trains writes text
};

/// run_config_command() with that stage; `runtime` must have the classes of
/// register_stage_actors().
int run_stage_command(runtime::Runtime& runtime, const StageCommand& command, int argc,
                      char** argv);

/// What `--dry-run` says of a stage: batches, steps and memory. Errors: what the run would find
/// wrong with the configuration; memory that `nodes` (none: not known) do not have. Starts nothing.
runtime::Status stage_dry_run(const Config& config, DataStage& stage, std::ostream& out,
                              std::span<const NodeRoom> nodes);

}  // namespace rl
