// What a policy worker needs to know, read from the configuration once.
#pragma once

#include <cstdint>
#include <filesystem>

#include "rl/algo/aggregate.h"
#include "rl/algo/kl.h"
#include "rl/algo/policy_loss.h"
#include "rl/config/config.h"
#include "rl/train/batch_plan.h"
#include "rl/train/learner.h"
#include "rl/train/lr_schedule.h"
#include "runtime/core/result.h"

namespace rl {

/// How samples are drawn from the policy.
struct SamplingOptions {
  std::int64_t samples = 1;  // per prompt
  float temperature = 1.0F;  // 0: greedy
  float top_p = 1.0F;
  std::int64_t top_k = -1;
  std::int64_t response_tokens_max = 512;
};

/// The objective: clipped surrogate, minus an entropy bonus, plus a penalty for leaving the reference.
struct PolicyObjective {
  ClipOptions clip;
  AggregationMode aggregation = AggregationMode::kTokenMean;
  double entropy_coefficient = 0.0;
  bool use_kl_loss = false;
  double kl_coefficient = 0.001;
  KlPenalty kl_penalty;
};

struct PolicyOptions {
  std::filesystem::path model;  // a Hugging Face folder or .gguf file
  int threads = 1;              // of this worker
  SamplingOptions training;
  SamplingOptions validation;
  PolicyObjective objective;
  LearnerOptions learner;
  std::int64_t epochs = 1;      // passes over a step's samples
  MicroBatchLimits micro_batch;
  std::int64_t positions_max = 0;  // tokens of prompt and response together

  /// From `actor_rollout_ref.*` and `data.max_*_length`. kInvalidArgument: a value out of range, by key.
  static runtime::Result<PolicyOptions> from_config(const Config& config);
};

/// The schedule of `actor_rollout_ref.actor.optim`, for a run of `total_steps`. kInvalidArgument: a value out of range, by key.
runtime::Result<LrScheduleOptions> lr_schedule_from_config(const Config& config, std::int64_t total_steps);

}  // namespace rl
