// verl's variance_proxy/... metrics: the noise of a step's gradient, estimated without any gradient
// of a single sample.
#pragma once

#include <cstdint>
#include <span>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/metrics/metrics.h"
#include "rl/worker/token_estimates.h"

namespace rl {

/// A worker's part of the means over a step's samples; summed over the workers they are the whole.
/// `advantages` belong to the learned tokens, and A is a sample's mean of them. W stands for the
/// norm of the sample's gradient. It is the sum over its tokens of ||d log p / d logits||² = 1 - 2
/// p + sum of squared probabilities. variance_proxy/expected_a_squared: mean of A²; expected_w:
/// mean of W; proxy2_total_power: mean of A² W, the mean squared norm of the samples' gradients.
Metrics variance_parts(const RolloutBatch& batch, const Probabilities& probabilities,
                       std::span<const float> advantages, const SampleUse& use,
                       std::int64_t samples_total);

/// What follows from the whole. proxy1_signal_strength is the squared norm of the mean gradient
/// (actor/grad_norm). proxy3_pure_noise is the variance of that mean over `samples`: (proxy2 -
/// proxy1) / (samples - 1), at least 0. Nothing where there are no parts.
void finish_variance_proxies(Metrics& metrics, std::int64_t samples);

}  // namespace rl
