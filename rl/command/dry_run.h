// `starling train --dry-run`: what a run would be, without running it.
#pragma once

#include <ostream>

#include "rl/config/config.h"

namespace rl {

/// Prints batch arithmetic, what would run where, and memory by process. Errors: what the run
/// itself would find wrong with the configuration, and keys that contradict each other, a line
/// each. Reads the data's rows and the model's config.json, no weights; starts nothing.
runtime::Status dry_run(const Config& config, std::ostream& out);

}  // namespace rl
