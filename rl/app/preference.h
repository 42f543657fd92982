// `starling dpo`, `starling kto`, `starling rm`: training on preferences.
#pragma once

#include "runtime/runtime.h"

namespace rl {

/// See run_stage_command().
int dpo_command(runtime::Runtime& runtime, int argc, char** argv);
int kto_command(runtime::Runtime& runtime, int argc, char** argv);
int rm_command(runtime::Runtime& runtime, int argc, char** argv);

}  // namespace rl
