#include "rl/algo/preference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "runtime/core/check.h"

namespace rl {

PreferenceLoss dpo_loss(const PairLogprobs& policy, const PairLogprobs& reference, const DpoOptions& options) {
  CHECK(policy.chosen_P.sizes() == policy.rejected_P.sizes());
  CHECK(policy.chosen_P.sizes() == reference.chosen_P.sizes() && reference.chosen_P.sizes() == reference.rejected_P.sizes());
  const at::Tensor chosen_P = policy.chosen_P - reference.chosen_P.detach();
  const at::Tensor rejected_P = policy.rejected_P - reference.rejected_P.detach();
  const at::Tensor margin_P = chosen_P - rejected_P;
  PreferenceLoss out;
  switch (options.loss) {
    case DpoLoss::kSigmoid:
      out.loss_P = -at::log_sigmoid(margin_P * options.beta) * (1.0 - options.label_smoothing) -
                   at::log_sigmoid(margin_P * -options.beta) * options.label_smoothing;
      break;
    case DpoLoss::kIpo: out.loss_P = (margin_P - 1.0 / (2.0 * options.beta)).square(); break;
    case DpoLoss::kHinge: out.loss_P = (1.0 - margin_P * options.beta).clamp_min(0.0); break;
  }
  out.rewards_chosen_P = (chosen_P * options.beta).detach();
  out.rewards_rejected_P = (rejected_P * options.beta).detach();
  return out;
}

at::Tensor kto_loss(const at::Tensor& policy_P, const at::Tensor& reference_P, const at::Tensor& kl, bool wanted,
                    const KtoOptions& options) {
  CHECK(policy_P.sizes() == reference_P.sizes());
  const at::Tensor lead_P = policy_P - reference_P.detach() - kl.detach();
  const double direction = wanted ? options.beta : -options.beta;
  return (1.0 - (lead_P * direction).sigmoid()) * options.weight;
}

at::Tensor bradley_terry_loss(const at::Tensor& chosen_P, const at::Tensor& rejected_P, double margin) {
  CHECK(chosen_P.sizes() == rejected_P.sizes());
  return -at::log_sigmoid(chosen_P - rejected_P - margin);
}

}  // namespace rl
