// The loop that policy and critic share: epochs over a step's samples, an optimizer step a
// mini-batch, a pass a micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rl/train/batch_plan.h"
#include "rl/train/learner.h"
#include "rl/train/rollout_batch.h"
#include "rl/watch/metrics.h"
#include "rl/worker/token_estimates.h"
#include "runtime/core/result.h"

namespace rl {

/// What a worker needs beside its samples to take a step: scalars, which the controller worked out.
struct UpdatePlan {
  std::vector<float> advantages;  // per sample of the worker's RolloutBatch, in units of
                                  // (normalised) reward; empty where a critic gives them per token
  std::vector<MiniBatch> mini_batches;  // one optimizer step each; as many on every worker
  double learning_rate = 0.0;
  AdvantageScaling scaling = {};  // of a critic's advantages
  bool critic_only = false;       // the policy stays as it is while its critic warms up
  SampleUse use = {};             // of each sample; the mini-batches' totals count it

  auto fields() {
    return std::tie(advantages, mini_batches, learning_rate, scaling, critic_only, use);
  }
};

/// backward() with its failure (out of memory, above all) as kResourceExhausted.
runtime::Status backward(const at::Tensor& loss);

/// kInvalidArgument: a mini-batch outside the samples, a use that is not of them.
runtime::Status check_plan(const RolloutBatch& batch, const UpdatePlan& plan);

/// How often samples [first, last) count, [B] as floats.
at::Tensor repeats_of(const SampleUse& use, std::int64_t first, std::int64_t last);

/// 1 for each of samples [first, last) that was right, else 0; [B] as floats.
at::Tensor positive_of(const SampleUse& use, std::int64_t first, std::int64_t last);

struct UpdateLoop {
  std::int64_t epochs = 1;
  MicroBatchLimits micro_batch;
  double learning_rate = 0.0;
  std::string role;         // of the metrics: "actor"
  double peak_flops = 0.0;  // what perf/mfu/<role> is a share of
};

/// Forward and backward over samples [first, last) of a mini-batch; adds its part to the metrics.
using AccumulateSamples = std::function<runtime::Status(
    const MiniBatch& mini_batch, std::int64_t first, std::int64_t last, Metrics& metrics)>;

/// Called before each mini-batch's first pass, on all workers: for what a loss has to know of all
/// of its samples. `first` is true while the weights are those that the step began with.
using BeginMiniBatch = std::function<runtime::Status(const MiniBatch& mini_batch, bool first)>;

/// Runs it over all mini-batches and takes their optimizer steps. Returns what `accumulate` added,
/// <role>/grad_norm and <role>/skipped_updates as this worker's part of the means over the steps:
/// summed over the workers they are the whole (skipped updates are not divided). So is
/// perf/mfu/<role>, the share of the peak that training_flops() makes in the time that it all took.
/// Errors: those of `accumulate` and of Learner::apply.
runtime::Result<Metrics> run_updates(Learner& learner, const RolloutBatch& batch,
                                     std::span<const MiniBatch> mini_batches,
                                     const UpdateLoop& loop, const AccumulateSamples& accumulate,
                                     const BeginMiniBatch& begin = {});

}  // namespace rl
