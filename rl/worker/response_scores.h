// Scores of the learned tokens of a RolloutBatch by a model: the scoring that the roles share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/model/packed_batch.h"
#include "rl/worker/passes.h"
#include "runtime/core/result.h"

namespace rl {

/// What the policy of now says of each learned token; both empty where the estimator does not ask
/// (EstimatorTraits::needs_probabilities).
struct Probabilities {
  std::vector<float> logprobs;
  std::vector<float> squares;  // the sum of squared probabilities of all tokens in its place
};

/// Prompt and response tokens of each sample: what micro-batches are planned by.
std::vector<std::int64_t> sample_lengths(const RolloutBatch& batch);

/// Samples that are scored.
struct ScoredSamples {
  MicroBatch samples;
  std::span<const MicroBatch> passes = {};  // over them, as the controller cut them; none: one
};

/// Samples with their prompts, packed for a pass over the responses.
PackedBatch pack_samples(const RolloutBatch& batch, const MicroBatch& samples);

/// Log-probabilities of the learned tokens of those samples, without a graph. kInvalidArgument:
/// passes over other samples.
runtime::Result<std::vector<float>> response_logprobs(const Passes& passes,
                                                      const RolloutBatch& batch, float temperature,
                                                      const ScoredSamples& scored);

/// The same log-probabilities, with the sums of squared probabilities.
runtime::Result<Probabilities> response_probabilities(const Passes& passes,
                                                      const RolloutBatch& batch, float temperature,
                                                      const ScoredSamples& scored);

/// The critic's prediction at the token before each learned one, without a graph. `head` has one
/// output. Errors: as response_logprobs().
runtime::Result<std::vector<float>> response_values(const Passes& passes, const std::string& head,
                                                    const RolloutBatch& batch,
                                                    const ScoredSamples& scored);

/// The head's output at the token before each target.
at::Tensor at_targets(const at::Tensor& head_T, const PackedBatch& packed);

}  // namespace rl
