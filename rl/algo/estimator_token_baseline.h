// The baseline of least variance for each token, from the returns of a group and the size of its
// gradients. Shapes and masks as in token_advantage.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "rl/algo/token_advantage.h"

namespace rl {

/// Returns to come, less at each place t the group's mean of them weighted by W_t. W_t is how large
/// the gradient of a response's log-prob has become up to there. It adds up 1 - 2 p + sum p^2, the
/// squared length of d log p / d logits, over the learned tokens up to t. Here p is the probability
/// of the generated token, and the sum goes over the vocabulary (`squares_BT`). Only responses that
/// are learned at t count there. A group of one has no baseline, nor has what the longest response
/// of a group has beyond the second longest. `groups` are any ids, equal for responses to one
/// prompt. verl's optimal_token_baseline; weights as in Greensmith, Bartlett and Baxter 2004,
/// "Variance reduction techniques for gradient estimates in reinforcement learning".
Advantages optimal_token_baseline(const at::Tensor& rewards_BT, const at::Tensor& logprobs_BT,
                                  const at::Tensor& squares_BT, const at::Tensor& mask_BT,
                                  std::span<const std::int64_t> groups);

}  // namespace rl
