// Advantages that differ from token to token, from rewards per token.
// Shapes: B sequences, T tokens, all fp32 on one device; masks as in masked.h. Rewards are in units
// of score; a score for the whole response stands on its last token. Gradients never flow through
// these. Each function but per_token() stands in the file of its estimator, estimator_NAME.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace rl {

struct Advantages {
  at::Tensor advantages_BT;  // 0 where the mask is 0
  at::Tensor returns_BT;     // what a critic should predict
};

struct GaeOptions {
  double gamma = 1.0;   // discount per token
  double lambda = 1.0;  // 1: full returns, little bias; 0: one step, little variance
  bool whiten =
      true;  // over this mask; not where a batch is one of several that are whitened together
  std::optional<double> critic_lambda =
      {};  // of the returns that the critic learns, where it is decoupled from the policy's; VAPO,
           // arXiv:2504.05118, section 3.1
  std::optional<double> length_alpha =
      {};  // the policy's lambda is 1 - 1 / (alpha * length) instead: longer responses look
           // further; VAPO, section 3.2
};

/// Generalized advantage estimation; Schulman et al. 2015, arXiv:1506.02438, equation 16. Tokens
/// outside the mask (padding, what a tool said) are skipped as if they were not there. Advantages
/// are whitened over the mask unless options say otherwise. Returns are advantages + values before
/// whitening, or those of critic_lambda; outside the mask they are only padding.
Advantages gae(const at::Tensor& rewards_BT, const at::Tensor& values_BT, const at::Tensor& mask_BT,
               const GaeOptions& options);

/// REINFORCE++: discounted returns whitened over the batch; Hu 2025, arXiv:2501.03262.
Advantages reinforce_plus_plus(const at::Tensor& rewards_BT, const at::Tensor& mask_BT,
                               double gamma);

/// ReMax: undiscounted returns minus the score of the greedy response to the same prompt; Li et al.
/// 2023, arXiv:2310.10505.
Advantages remax(const at::Tensor& rewards_BT, const at::Tensor& baselines_B,
                 const at::Tensor& mask_BT);

/// One advantage per response (group_advantage.h) on each of its tokens: [B, T].
at::Tensor per_token(const at::Tensor& advantages_B, const at::Tensor& mask_BT);

}  // namespace rl
