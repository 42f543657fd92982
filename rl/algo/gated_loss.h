// Policy losses that let go of a token by a gate or by a divergence, where policy_loss.h's bound
// its ratio. Shapes and conventions as in policy_loss.h; gates and weights are constants: no
// gradient flows through them, except through SAPO's.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "rl/algo/policy_loss.h"
#include "runtime/core/result.h"

namespace rl {

struct SapoOptions {
  double tau_positive = 1.0;   // how fast the gate closes where the advantage is positive, above 0
  double tau_negative = 1.05;  // elsewhere; larger, since such tokens destabilise more
};

/// SAPO: -A * sigmoid(tau (ratio - 1)) * 4 / tau. At ratio 1 its gradient is the policy gradient's,
/// and it fades on both sides instead of being cut off; 2025, arXiv:2511.20347, equation 5. Nothing
/// counts as clipped.
PolicyLoss sapo_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                     const at::Tensor& advantages_BT, const SapoOptions& options);

/// How DPPO measures that a token has left the trust region: by its own probability alone (the
/// "binary" divergences of the paper).
enum class TokenDivergence { kTotalVariation, kKl };

/// DPPO: -A * min(ratio, dual) * log pi, without a gradient for tokens that left the trust region
/// in the direction that the advantage pushes them. The region ends at `clip.high` upwards for a
/// positive advantage, at `clip.low` downwards otherwise; 2026, arXiv:2602.04879.
/// `clipped_lower_BT`: the ratio was above `clip.dual`.
PolicyLoss dppo_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                     const at::Tensor& advantages_BT, TokenDivergence divergence,
                     const ClipOptions& clip);

/// DRO: -(A * log pi - beta / 2 * (log ratio)^2). In place of a bound, leaving the old policy has a
/// quadratic price; Richemond et al. 2024, arXiv:2405.19107.
PolicyLoss dro_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                    const at::Tensor& advantages_BT, double beta);

/// Weights pi / pi_old for samples of an older policy, as a constant.
struct ImportanceWeightOptions {
  bool by_sequence = false;  // the product over a sequence's tokens, else each token's own
  double upper = 2.0;        // weights above are this...
  std::optional<double>
      lower;  // ...or, with a lower bound too, weights outside of both are 0 (IcePop)
};

/// "2.0" or "0.5_5.0": ImportanceWeightOptions' bounds. kInvalidArgument: anything else.
runtime::Result<ImportanceWeightOptions> parse_importance_bounds(std::string_view text);

/// [B, T]; Espeholt et al. 2018, arXiv:1802.01561 (truncation), Ling Team 2025, arXiv:2510.18855
/// (IcePop).
at::Tensor importance_weights(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                              const at::Tensor& mask_BT, const ImportanceWeightOptions& options);

/// REINFORCE with samples of an older policy: policy_gradient_loss() times the weights; none:
/// without weights. `clipped_BT` is 1 where a weight was bounded.
PolicyLoss weighted_policy_gradient_loss(const at::Tensor& logprobs_BT,
                                         const at::Tensor& old_logprobs_BT,
                                         const at::Tensor& advantages_BT, const at::Tensor& mask_BT,
                                         const std::optional<ImportanceWeightOptions>& options);

}  // namespace rl
