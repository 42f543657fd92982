// DisCO; Li et al. 2025, arXiv:2505.12366. Right responses are to score above wrong ones of the
// same prompt, while the policy stays near the one that generated them.
#pragma once

#include <span>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/comm/data_ranks.h"
#include "runtime/core/result.h"

namespace rl {

/// What a response scores: a mean over its tokens.
enum class DiscoScore {
  kLogL,    // "logL": of log-probabilities
  kLratio,  // "Lratio": of importance ratios
};

/// Defaults are verl's.
struct DiscoOptions {
  DiscoScore score = DiscoScore::kLogL;
  double delta = 1e-4;  // the KL a token that costs nothing
  double beta = 1e3;    // the price of what is above it, squared and halved
  double tau = 10.0;  // of the weights of wrong responses: small, and the likeliest has all of it;
                      // large, and all have the same
};

/// What a mini-batch's loss is made of, worked out at the weights of now. The loss is
/// sum(of_samples * score) + kl * mean KL, with these as constants.
struct DiscoWeights {
  std::vector<float> of_samples;  // [samples of the worker]; 0 outside the mini-batch
  double kl = 0.0;                // beta * (mean KL - delta), or 0 where that is negative
  double mean_kl = 0.0;           // a token, of the whole mini-batch: ratio - 1 - log ratio
};

/// `labels` [samples]: above 0 is right, below wrong, 0 neither. A prompt whose samples are all
/// alike has no part but in the number of prompts, which the loss is divided by. `now` and `old`
/// are log-probs of the learned tokens of the whole batch. Samples of a prompt are on one worker;
/// the totals are of all of them. Collective.
runtime::Result<DiscoWeights> disco_weights(const RolloutBatch& batch,
                                            std::span<const float> labels,
                                            std::span<const float> now, std::span<const float> old,
                                            const MiniBatch& mini_batch,
                                            const DiscoOptions& options, DataRanks& ranks);

/// A mean over each sample's tokens; without `old` (empty) or by ratio to it. Of samples [first,
/// last).
std::vector<double> disco_scores(const RolloutBatch& batch, std::span<const float> now,
                                 std::span<const float> old, DiscoScore score, std::int64_t first,
                                 std::int64_t last);

}  // namespace rl
