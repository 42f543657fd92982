// `starling-rl all-reduce`: what `starling doctor --cluster` runs between the nodes.
#pragma once

#include "runtime/runtime.h"

namespace rl {

/// Returns the exit code.
int all_reduce_command(runtime::Runtime& runtime, int argc, char** argv);

}  // namespace rl
