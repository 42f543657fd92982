// Policy losses from importance ratios. Variants differ by the ratio they use and by how they bound
// it. Shapes: B sequences, T tokens, fp32 on one device; masks as in masked.h. Log-probs are
// natural. Old log-probs and advantages are constants: no gradient flows into them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace rl {

/// log(pi / pi_old) per token, bounded to [-20, 20] so that one token cannot overflow the loss.
at::Tensor log_ratio(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT);

/// pi / pi_old per token: exp(log_ratio).
at::Tensor importance_ratio(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT);

/// GSPO's ratio: every token carries its sequence's geometric mean ratio in value, and its own
/// log-prob's gradient; Zheng et al. 2025, arXiv:2507.18071, section 4.3.
at::Tensor sequence_importance_ratio(const at::Tensor& logprobs_BT,
                                     const at::Tensor& old_logprobs_BT, const at::Tensor& mask_BT);

/// How far a ratio may leave 1 before it stops counting.
struct ClipOptions {
  double low = 0.2;  // below 1 by this
  double high =
      0.2;  // above 1 by this; more than `low` is DAPO's clip-higher, arXiv:2503.14476, section 3.1
  std::optional<double> dual;  // at negative advantage no loss above -advantage * dual (> 1); Ye et
                               // al. 2019, arXiv:1912.09729
};

/// A loss per token, and which tokens were held back: 1 where so, 0 elsewhere. masked_mean of these
/// is verl's actor/pg_clipfrac and actor/pg_clipfrac_lower.
struct PolicyLoss {
  at::Tensor loss_BT;
  at::Tensor clipped_BT;
  at::Tensor clipped_lower_BT;
};

/// PPO: -min(ratio * A, clip(ratio) * A), bounded from the other side too when `dual` is set;
/// Schulman et al. 2017, arXiv:1707.06347, equation 7.
PolicyLoss clipped_surrogate(const at::Tensor& ratio_BT, const at::Tensor& advantages_BT,
                             const ClipOptions& clip);

/// CISPO: -stop_gradient(clip(ratio)) * A * log pi, so that clipped tokens keep their gradient;
/// MiniMax 2025, arXiv:2506.13585, section 3.1.
PolicyLoss cispo_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                      const at::Tensor& advantages_BT, const ClipOptions& clip);

/// Clip-Cov: the clipped surrogate, and no gradient at all where `chosen_BT` is 1; Cui et al. 2025,
/// arXiv:2505.22617, section 4.2. `clipped_lower_BT` are those.
PolicyLoss covariance_clipped_loss(const at::Tensor& ratio_BT, const at::Tensor& advantages_BT,
                                   const at::Tensor& chosen_BT, const ClipOptions& clip);

/// KL-Cov: -ratio * A without a bound, and `coefficient` times |log ratio| more where `chosen_BT`
/// is 1; the same, section 4.3.
PolicyLoss covariance_kl_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                              const at::Tensor& advantages_BT, const at::Tensor& chosen_BT,
                              double coefficient);

/// The policy gradient itself: -A * log pi, without a ratio and without clipping. GPG's loss (Chu
/// et al. 2025, arXiv:2504.02546); exact where samples are of the policy that learns.
PolicyLoss policy_gradient_loss(const at::Tensor& logprobs_BT, const at::Tensor& advantages_BT);

/// GMPO's loss is one number per sequence, [B]: its mean over the sequences is the step's loss.
struct SequencePolicyLoss {
  at::Tensor loss_B;
  at::Tensor clipped_BT;        // at positive advantage
  at::Tensor clipped_lower_BT;  // at negative advantage
};

/// GMPO: the geometric mean of the tokens' ratios, each clipped in log space to [-low, high]; Zhao
/// et al. 2025, arXiv:2507.20673.
SequencePolicyLoss geometric_mean_loss(const at::Tensor& logprobs_BT,
                                       const at::Tensor& old_logprobs_BT,
                                       const at::Tensor& advantages_BT, const at::Tensor& mask_BT,
                                       const ClipOptions& clip);

/// PPO's critic loss per token, [B, T]: half the larger of two squared errors. The first is of the
/// value, the second of the value kept within `clip` of the old one. `clipped_BT` is 1 where the
/// second was larger. Schulman et al. 2015, arXiv:1506.02438; clipping as in the code of 2017.
struct ValueLoss {
  at::Tensor loss_BT;
  at::Tensor clipped_BT;
};
ValueLoss clipped_value_loss(const at::Tensor& values_BT, const at::Tensor& old_values_BT,
                             const at::Tensor& returns_BT, double clip);

}  // namespace rl
