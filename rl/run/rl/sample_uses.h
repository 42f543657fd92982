// The weight of each sample of a step, and the responses that were right.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/run/rl/step_batch.h"
#include "rl/run/rl/trainer_options.h"

namespace rl {

struct SampleUseOptions {
  std::optional<PfPpoOptions> pf_ppo = {};    // samples count as often as their scores say
  bool mask_truncated = false;                // responses that the length limit cut do not count
  std::optional<double> positive_score = {};  // from which on a response is right
  std::uint64_t seed = 0;
};

/// How a step uses its samples, by worker.
std::vector<SampleUse> sample_uses(const StepBatch& batch, const SampleUseOptions& options,
                                   std::int64_t step);

}  // namespace rl
