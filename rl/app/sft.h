// `starling sft`: supervised training on conversations and demonstrations.
#pragma once

#include "runtime/runtime.h"

namespace rl {

/// See run_stage_command().
int sft_command(runtime::Runtime& runtime, int argc, char** argv);

}  // namespace rl
