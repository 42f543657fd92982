// How much memory a stage's workers will take.
#pragma once

#include "rl/stage/stage.h"
#include "rl/train/memory_plan.h"
#include "runtime/core/result.h"

namespace rl {

/// Of an opened stage. Reads the config.json of its models. Errors: a model that is not here, an
/// adapter that does not fit.
runtime::Result<RoleMemory> stage_memory(const StageSetup& setup, const Stage& stage);

}  // namespace rl
