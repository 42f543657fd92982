// The rules for trainer.gradient_leaves in every kind of run.
#pragma once

#include <cstdint>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// kInvalidArgument: fewer leaves (see GradientRound; 0: one a worker) than workers.
runtime::Status check_gradient_leaves(const Config& config, std::int64_t leaves,
                                      std::int64_t workers);

}  // namespace rl
