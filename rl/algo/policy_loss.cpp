#include "rl/algo/policy_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr double kLogRatioMax = 20.0;
constexpr double kSequenceLogRatioMax = 10.0;

at::Tensor indicator(const at::Tensor& condition, const at::Tensor& like) {
  return condition.detach().to(like.scalar_type());
}

at::Tensor zero_outside(const at::Tensor& values, const at::Tensor& mask) {
  return at::where(mask.to(at::kBool), values, at::zeros({}, values.options()));
}

at::Tensor mean_of_rows(const at::Tensor& values_BT, const at::Tensor& mask_BT) {
  return zero_outside(values_BT, mask_BT).sum(1) / mask_BT.sum(1).clamp_min(1.0);
}

}  // namespace

at::Tensor log_ratio(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT) {
  CHECK(logprobs_BT.sizes() == old_logprobs_BT.sizes());
  return (logprobs_BT - old_logprobs_BT.detach()).clamp(-kLogRatioMax, kLogRatioMax);
}

at::Tensor importance_ratio(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT) {
  return log_ratio(logprobs_BT, old_logprobs_BT).exp();
}

at::Tensor sequence_importance_ratio(const at::Tensor& logprobs_BT,
                                     const at::Tensor& old_logprobs_BT, const at::Tensor& mask_BT) {
  CHECK(logprobs_BT.sizes() == old_logprobs_BT.sizes() && logprobs_BT.sizes() == mask_BT.sizes());
  const at::Tensor sequence_B = mean_of_rows((logprobs_BT - old_logprobs_BT).detach(), mask_BT);
  // logprob - stop_gradient(logprob) is zero in value and passes the token's gradient.
  return (logprobs_BT - logprobs_BT.detach() + sequence_B.unsqueeze(1))
      .clamp_max(kSequenceLogRatioMax)
      .exp();
}

PolicyLoss clipped_surrogate(const at::Tensor& ratio_BT, const at::Tensor& advantages_BT,
                             const ClipOptions& clip) {
  CHECK(ratio_BT.sizes() == advantages_BT.sizes());
  const at::Tensor weight_BT = -advantages_BT.detach();
  const at::Tensor free_BT = weight_BT * ratio_BT;
  const at::Tensor bounded_BT = weight_BT * ratio_BT.clamp(1.0 - clip.low, 1.0 + clip.high);
  PolicyLoss out;
  out.loss_BT = at::maximum(free_BT, bounded_BT);
  out.clipped_BT = indicator(bounded_BT > free_BT, ratio_BT);
  out.clipped_lower_BT = at::zeros_like(out.clipped_BT);
  if (clip.dual) {
    CHECK(*clip.dual > 1.0);
    const at::Tensor ceiling_BT = weight_BT * *clip.dual;
    const at::Tensor negative_BT = advantages_BT.detach() < 0;
    out.clipped_lower_BT = indicator(negative_BT.logical_and(out.loss_BT > ceiling_BT), ratio_BT);
    out.loss_BT = at::where(negative_BT, at::minimum(ceiling_BT, out.loss_BT), out.loss_BT);
  }
  return out;
}

PolicyLoss cispo_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                      const at::Tensor& advantages_BT, const ClipOptions& clip) {
  const at::Tensor ratio_BT = importance_ratio(logprobs_BT, old_logprobs_BT).detach();
  const at::Tensor bounded_BT = ratio_BT.clamp(1.0 - clip.low, 1.0 + clip.high);
  PolicyLoss out;
  out.loss_BT = -bounded_BT * advantages_BT.detach() * logprobs_BT;
  out.clipped_BT = indicator(ratio_BT != bounded_BT, ratio_BT);
  out.clipped_lower_BT = at::zeros_like(out.clipped_BT);
  return out;
}

PolicyLoss covariance_clipped_loss(const at::Tensor& ratio_BT, const at::Tensor& advantages_BT,
                                   const at::Tensor& chosen_BT, const ClipOptions& clip) {
  CHECK(ratio_BT.sizes() == chosen_BT.sizes());
  PolicyLoss out =
      clipped_surrogate(ratio_BT, advantages_BT, {.low = clip.low, .high = clip.high, .dual = {}});
  out.loss_BT = out.loss_BT * (1.0 - chosen_BT);
  out.clipped_lower_BT = chosen_BT;
  return out;
}

PolicyLoss covariance_kl_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                              const at::Tensor& advantages_BT, const at::Tensor& chosen_BT,
                              double coefficient) {
  CHECK(logprobs_BT.sizes() == chosen_BT.sizes());
  const at::Tensor log_BT = log_ratio(logprobs_BT, old_logprobs_BT);
  PolicyLoss out;
  out.loss_BT = -advantages_BT.detach() * log_BT.exp() + chosen_BT * log_BT.abs() * coefficient;
  out.clipped_BT = at::zeros_like(chosen_BT);
  out.clipped_lower_BT = at::zeros_like(chosen_BT);
  return out;
}

PolicyLoss policy_gradient_loss(const at::Tensor& logprobs_BT, const at::Tensor& advantages_BT) {
  const at::Tensor none_BT = at::zeros_like(logprobs_BT.detach());
  return {-logprobs_BT * advantages_BT.detach(), none_BT, none_BT};
}

SequencePolicyLoss geometric_mean_loss(const at::Tensor& logprobs_BT,
                                       const at::Tensor& old_logprobs_BT,
                                       const at::Tensor& advantages_BT, const at::Tensor& mask_BT,
                                       const ClipOptions& clip) {
  CHECK(logprobs_BT.sizes() == old_logprobs_BT.sizes() && logprobs_BT.sizes() == mask_BT.sizes());
  const at::Tensor constant_BT = advantages_BT.detach();
  const at::Tensor sign_BT = constant_BT.sign();
  const at::Tensor log_BT = logprobs_BT - old_logprobs_BT.detach();
  const at::Tensor bounded_BT = log_BT.clamp(-clip.low, clip.high);
  const at::Tensor kept_BT = sign_BT * at::minimum(sign_BT * log_BT, sign_BT * bounded_BT);
  SequencePolicyLoss out;
  out.loss_B = -mean_of_rows(constant_BT, mask_BT) * mean_of_rows(kept_BT, mask_BT).exp();
  const at::Tensor clipped_BT = log_BT != bounded_BT;
  out.clipped_BT = indicator(clipped_BT.logical_and(constant_BT > 0), log_BT);
  out.clipped_lower_BT = indicator(clipped_BT.logical_and(constant_BT < 0), log_BT);
  return out;
}

ValueLoss clipped_value_loss(const at::Tensor& values_BT, const at::Tensor& old_values_BT,
                             const at::Tensor& returns_BT, double clip) {
  CHECK(values_BT.sizes() == old_values_BT.sizes() && values_BT.sizes() == returns_BT.sizes());
  const at::Tensor old_BT = old_values_BT.detach();
  const at::Tensor bounded_BT = at::clamp(values_BT, old_BT - clip, old_BT + clip);
  const at::Tensor free_loss_BT = (values_BT - returns_BT).square();
  const at::Tensor bounded_loss_BT = (bounded_BT - returns_BT).square();
  return {at::maximum(free_loss_BT, bounded_loss_BT) * 0.5,
          indicator(bounded_loss_BT > free_loss_BT, values_BT)};
}

}  // namespace rl
