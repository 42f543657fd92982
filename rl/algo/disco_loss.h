// DisCO's loss; Li et al. 2025, arXiv:2505.12366. Shapes as in policy_loss.h.
#pragma once

#include <ATen/core/Tensor.h>

namespace rl {

/// sum(weights * score) + kl_weight * (sum over tokens of ratio - 1 - log ratio) / tokens, a
/// scalar. A response's score is the mean of its tokens' log-probs or, `by_ratio`, of their ratios
/// to the old policy. Weights are constants, below 0 for what is to score higher
/// (rl/worker/disco.h).
at::Tensor disco_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                      const at::Tensor& mask_BT, const at::Tensor& weights_B, bool by_ratio,
                      double kl_weight, double tokens);

}  // namespace rl
