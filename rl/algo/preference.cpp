#include "rl/algo/preference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "runtime/core/check.h"

namespace rl {
namespace {

// -log sigmoid of how far the chosen response leads, with some doubt about which it was.
at::Tensor sigmoid_loss(const at::Tensor& lead_P, double label_smoothing) {
  return -at::log_sigmoid(lead_P) * (1.0 - label_smoothing) -
         at::log_sigmoid(-lead_P) * label_smoothing;
}

// log(1 - e^x) for x < 0 without losing it all to rounding on either side; a probability of 1
// counts as the largest below it.
at::Tensor log_one_minus_exp(const at::Tensor& x) {
  const at::Tensor below = x.clamp_max(-6e-8);
  return at::where(below > -std::log(2.0), at::log(-at::expm1(below)), at::log1p(-at::exp(below)));
}

}  // namespace

PreferenceLoss dpo_loss(const PairLogprobs& policy, const PairLogprobs& reference,
                        const DpoOptions& options) {
  CHECK(policy.chosen_P.sizes() == policy.rejected_P.sizes());
  CHECK(policy.chosen_P.sizes() == reference.chosen_P.sizes() &&
        reference.chosen_P.sizes() == reference.rejected_P.sizes());
  const at::Tensor chosen_P = policy.chosen_P - reference.chosen_P.detach();
  const at::Tensor rejected_P = policy.rejected_P - reference.rejected_P.detach();
  const at::Tensor margin_P = chosen_P - rejected_P;
  PreferenceLoss out;
  switch (options.loss) {
    case DpoLoss::kSigmoid:
      out.loss_P = sigmoid_loss(margin_P * options.beta, options.label_smoothing);
      break;
    case DpoLoss::kIpo: out.loss_P = (margin_P - 1.0 / (2.0 * options.beta)).square(); break;
    case DpoLoss::kHinge: out.loss_P = (1.0 - margin_P * options.beta).clamp_min(0.0); break;
    case DpoLoss::kSppo:
      out.loss_P =
          (chosen_P - 0.5 / options.beta).square() + (rejected_P + 0.5 / options.beta).square();
      break;
  }
  out.rewards_chosen_P = (chosen_P * options.beta).detach();
  out.rewards_rejected_P = (rejected_P * options.beta).detach();
  return out;
}

at::Tensor orpo_loss(const PairLogprobs& mean, double weight) {
  CHECK(mean.chosen_P.sizes() == mean.rejected_P.sizes());
  const at::Tensor log_odds_ratio_P =
      mean.chosen_P - mean.rejected_P -
      (log_one_minus_exp(mean.chosen_P) - log_one_minus_exp(mean.rejected_P));
  return -mean.chosen_P - at::log_sigmoid(log_odds_ratio_P) * weight;
}

at::Tensor simpo_loss(const PairLogprobs& mean, const SimpoOptions& options) {
  CHECK(mean.chosen_P.sizes() == mean.rejected_P.sizes());
  return sigmoid_loss((mean.chosen_P - mean.rejected_P) * options.beta - options.gamma,
                      options.label_smoothing);
}

at::Tensor kto_loss(const at::Tensor& policy_P, const at::Tensor& reference_P, const at::Tensor& kl,
                    bool wanted, const KtoOptions& options) {
  CHECK(policy_P.sizes() == reference_P.sizes());
  const at::Tensor lead_P = policy_P - reference_P.detach() - kl.detach();
  const double direction = wanted ? options.beta : -options.beta;
  return (1.0 - (lead_P * direction).sigmoid()) * options.weight;
}

at::Tensor bradley_terry_loss(const at::Tensor& chosen_P, const at::Tensor& rejected_P,
                              double margin) {
  CHECK(chosen_P.sizes() == rejected_P.sizes());
  return -at::log_sigmoid(chosen_P - rejected_P - margin);
}

at::Tensor bradley_terry_loss(const at::Tensor& chosen_P, const at::Tensor& rejected_P,
                              const at::Tensor& margin_P) {
  CHECK(chosen_P.sizes() == rejected_P.sizes() && chosen_P.sizes() == margin_P.sizes());
  return -at::log_sigmoid(chosen_P - rejected_P - margin_P);
}

}  // namespace rl
