// The loop that policy and critic share: epochs over a step's samples, an optimizer step per
// mini-batch, a pass per micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/metrics/metrics.h"
#include "rl/optim/learner.h"
#include "rl/worker/gradient_rounds.h"
#include "rl/worker/passes.h"
#include "rl/worker/token_estimates.h"
#include "runtime/core/result.h"

namespace rl {

/// What a worker needs next to its samples to take a step: scalars, which the controller worked
/// out.
struct UpdatePlan {
  std::vector<float> advantages;  // per sample of the worker's RolloutBatch, in units of
                                  // (normalised) reward; empty where a critic gives them per token
  std::vector<MiniBatch> mini_batches;  // one optimizer step each; as many on every worker
  double learning_rate = 0.0;
  AdvantageScaling scaling = {};  // of a critic's advantages
  bool critic_only = false;       // the policy stays as it is while its critic warms up
  SampleUse use = {};             // of each sample; the mini-batches' totals count it
  std::vector<MicroBatch> scoring_batches =
      {};  // passes over all samples before the first step, as many on every worker; none: one

  auto fields() {
    return std::tie(advantages, mini_batches, learning_rate, scaling, critic_only, use,
                    scoring_batches);
  }
};

/// kInvalidArgument: a mini-batch outside the samples, micro-batches that are not its samples, a
/// use that is not of the samples.
runtime::Status check_plan(const RolloutBatch& batch, const UpdatePlan& plan);

/// How often each of those samples counts, [B] as floats.
at::Tensor repeats_of(const SampleUse& use, const MicroBatch& samples);

/// 1 for each of those samples that was right, else 0; [B] as floats.
at::Tensor positive_of(const SampleUse& use, const MicroBatch& samples);

struct UpdateLoop {
  std::int64_t epochs = 1;
  PassOptions passes;
  double learning_rate = 0.0;
  std::string role;         // of the metrics: "actor"
  double peak_flops = 0.0;  // what perf/mfu/<role> is a share of
};

/// How a role learns from a mini-batch.
struct MiniBatchLoss {
  OutputOptions wanted;  // of each pass
  /// The loss of some of its samples; see PassLoss.
  std::function<runtime::Result<at::Tensor>(const MiniBatch& mini_batch, const Outputs& outputs,
                                            const MicroBatch& samples, const PackedBatch& packed,
                                            Metrics& metrics)>
      loss;
  /// Called before its first pass, on all workers: for what a loss has to know of all of its
  /// samples. `first` is true while the weights are those that the step began with. Or null.
  std::function<runtime::Status(const MiniBatch& mini_batch, bool first)> begin = {};
};

/// Runs the passes of all mini-batches and takes their optimizer steps. Returns what the losses
/// added, <role>/grad_norm and <role>/skipped_updates as this worker's part of the means over the
/// steps. Summed over the workers they are the whole (skipped updates are not divided). So is
/// perf/mfu/<role>, the share of the peak that training_flops() makes in the time that it all took.
/// Errors: those of Passes::learn, of `begin` and of Learner::apply.
runtime::Result<Metrics> run_updates(Learner& learner, const RolloutBatch& batch,
                                     std::span<const MiniBatch> mini_batches,
                                     const UpdateLoop& loop, const MiniBatchLoss& learn);

}  // namespace rl
