// `starling train --dry-run`: what a run would be, without running it.
#pragma once

#include <ostream>
#include <span>

#include "rl/config/config.h"
#include "rl/run/memory_fit.h"

namespace rl {

/// Prints batch arithmetic, what would run where, and memory by process. Errors, a line each: what
/// the run itself would find wrong with the configuration, and keys that contradict each other.
/// Memory that `nodes` (none: not known) do not have is one, too. Reads the data's rows and the
/// model's config.json, no weights; starts nothing.
runtime::Status dry_run(const Config& config, std::ostream& out,
                        std::span<const NodeRoom> nodes = {});

}  // namespace rl
