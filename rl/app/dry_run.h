// `starling train --dry-run`: what a run would be, without running it.
#pragma once

#include <ostream>
#include <span>

#include "rl/config/config.h"
#include "rl/run/memory_fit.h"

namespace rl {

/// Prints batch arithmetic, what would run where, and memory by process. Errors: what the run
/// itself would find wrong with the configuration, keys that contradict each other, and memory that
/// `nodes` (none: not known) do not have, a line each. Reads the data's rows and the model's
/// config.json, no weights; starts nothing.
runtime::Status dry_run(const Config& config, std::ostream& out,
                        std::span<const NodeRoom> nodes = {});

}  // namespace rl
