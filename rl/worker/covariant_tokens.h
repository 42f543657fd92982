// Clip-Cov and KL-Cov: the few tokens that drive entropy down, those whose log-prob and advantage
// vary together most; Cui et al. 2025, arXiv:2505.22617.
#pragma once

#include <span>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/comm/data_ranks.h"
#include "runtime/core/result.h"

namespace rl {

/// Defaults are verl's.
struct CovarianceOptions {
  double clip_ratio = 0.0002;  // of the tokens lose their gradient (Clip-Cov), ...
  double clip_lower = 1.0;     // ... drawn from those whose covariance is between these
  double clip_upper = 5.0;
  double kl_ratio = 0.0002;     // of the tokens, those of the largest covariance, are held near the
                                // old policy (KL-Cov), ...
  double kl_coefficient = 0.1;  // ... by this share of |log ratio|
};

enum class CovarianceChoice { kClip, kKl };

/// 1 for each learned token that is chosen, else 0. A token's covariance is (advantage - mean) *
/// (log-prob - mean). The means are those of its mini-batch over all workers, the log-probs those
/// of the policy that generated it. What is chosen thus depends on neither micro-batches nor
/// workers. Of candidates for kClip a token is drawn by a hash of what was said up to it. At least
/// one token a mini-batch counts for the shares. Collective. `advantages` are per token.
runtime::Result<std::vector<float>> covariant_tokens(
    CovarianceChoice choice, const RolloutBatch& batch, std::span<const float> advantages,
    std::span<const MiniBatch> mini_batches, const CovarianceOptions& options, DataRanks& ranks);

}  // namespace rl
