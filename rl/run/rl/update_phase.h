// UpdatePhase: the optimizer steps on a step's samples.
#pragma once

#include <cstdint>

#include "rl/metrics/metrics.h"
#include "rl/metrics/step_metrics.h"
#include "rl/optim/lr_schedule.h"
#include "rl/run/rl/credit_assigner.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/step_batch.h"
#include "runtime/core/result.h"

namespace rl {

struct UpdatePhaseOptions {
  LrScheduleOptions policy_rate;
  LrScheduleOptions critic_rate = {};
  std::int64_t critic_warmup = 0;  // before this step only the critic learns
  bool reads_reference = false;    // the objective has a KL to the reference
};

class UpdatePhase {
 public:
  UpdatePhase(const UpdatePhaseOptions& options, UpdateCalls& calls)
      : options_(options), calls_(calls) {}

  /// Adds the metrics of critic and policy. On failure the weights may be neither of the step
  /// before nor of this one. Returns the number of mini-batches.
  runtime::Result<std::int64_t> update(const StepBatch& batch, const Credit& credit,
                                       std::int64_t step, Metrics& metrics, StepTimer& timer);

 private:
  UpdatePhaseOptions options_;
  UpdateCalls& calls_;
};

}  // namespace rl
