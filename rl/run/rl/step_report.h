// The metrics of a step that come from its samples.
#pragma once

#include <cstdint>

#include "rl/metrics/metrics.h"
#include "rl/metrics/step_metrics.h"
#include "rl/run/rl/credit_assigner.h"
#include "rl/run/rl/step_batch.h"

namespace rl {

/// Adds them to those of the workers.
void add_sample_metrics(const StepBatch& batch, const Credit& credit,
                        std::int64_t prompt_tokens_max, const StepTimer& timer, Metrics& metrics);

}  // namespace rl
