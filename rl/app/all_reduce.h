// `starling-rl all-reduce`: what `starling doctor --cluster` runs between the nodes.
#pragma once

#include <span>
#include <string>

#include "runtime/runtime.h"

namespace rl {

/// Returns the exit code.
int all_reduce_command(runtime::Runtime& runtime, int argc, char** argv);

/// Why NCCL cannot be used on these nodes, as far as is known without asking them; empty: it may
/// be.
std::string why_not_nccl(std::span<const runtime::NodeInfo> nodes);

}  // namespace rl
