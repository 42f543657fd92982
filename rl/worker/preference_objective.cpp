#include "rl/worker/preference_objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::array<std::pair<std::string_view, PreferenceLossKind>, 8> kLosses = {{
    {"sigmoid", PreferenceLossKind::kSigmoid},
    {"ipo", PreferenceLossKind::kIpo},
    {"hinge", PreferenceLossKind::kHinge},
    {"sppo", PreferenceLossKind::kSppo},
    {"orpo", PreferenceLossKind::kOrpo},
    {"simpo", PreferenceLossKind::kSimpo},
    {"kto", PreferenceLossKind::kKto},
    {"bradley_terry", PreferenceLossKind::kBradleyTerry},
}};

double sum(const at::Tensor& values) { return values.detach().sum().item<double>(); }

DpoLoss dpo_kind(PreferenceLossKind loss) {
  switch (loss) {
    case PreferenceLossKind::kIpo: return DpoLoss::kIpo;
    case PreferenceLossKind::kHinge: return DpoLoss::kHinge;
    case PreferenceLossKind::kSppo: return DpoLoss::kSppo;
    default: return DpoLoss::kSigmoid;
  }
}

PairLogprobs per_token(const PairLogprobs& sums, const PairLogprobs& tokens) {
  return {sums.chosen_P / tokens.chosen_P, sums.rejected_P / tokens.rejected_P};
}

// log(p / (1 - p)) of the first over that of the second, for the report.
at::Tensor log_odds_ratio(const PairLogprobs& mean) {
  const auto below = [](const at::Tensor& x) {
    return at::log1p(-at::exp(x.detach().clamp_max(-6e-8)));
  };
  return mean.chosen_P.detach() - mean.rejected_P.detach() -
         (below(mean.chosen_P) - below(mean.rejected_P));
}

Status read_reward_model(const Config& config, PreferenceObjective& out) {
  ConfigReader read(config);
  out.use_margin = read.get_bool("preference.use_margin");
  out.center_coefficient = read.get_float("preference.center_coefficient");
  if (!read.status().ok()) return read.status();
  return {};
}

Status read_singles(const Config& config, PreferenceObjective& out) {
  ConfigReader read(config);
  out.wanted_weight = read.get_float("preference.desirable_weight");
  out.unwanted_weight = read.get_float("preference.undesirable_weight");
  if (!read.status().ok()) return read.status();
  return {};
}

Status read_pairs(const Config& config, const std::string& loss, PreferenceObjective& out) {
  ConfigReader read(config);
  out.label_smoothing = read.get_float("preference.label_smoothing");
  out.average_logprobs = read.get_bool("preference.average_logprobs");
  out.simpo_gamma = read.get_float("preference.simpo_gamma");
  out.sft_weight = read.get_float("preference.sft_weight");
  if (!read.status().ok()) return read.status();
  const bool smoothed =
      out.loss == PreferenceLossKind::kSigmoid || out.loss == PreferenceLossKind::kSimpo;
  if (out.label_smoothing > 0 && !smoothed)
    return runtime::invalid_argument(
        "preference.label_smoothing goes with preference.loss=sigmoid and simpo, not with " + loss +
        ": set it to 0");
  if (out.sft_weight > 0 && out.loss == PreferenceLossKind::kOrpo)
    return runtime::invalid_argument(
        "preference.sft_weight does not go with preference.loss=orpo, which has that part already: "
        "set it to 0");
  if (out.average_logprobs && !out.needs_reference())
    return runtime::invalid_argument("preference.average_logprobs is what preference.loss=" + loss +
                                     " does anyway: leave it out");
  if (config.is_set("preference.simpo_gamma") && out.loss != PreferenceLossKind::kSimpo)
    return runtime::invalid_argument(
        "preference.simpo_gamma goes with preference.loss=simpo, not with " + loss +
        ": leave it out");
  if (read.find_string(kReferencePath) && !out.needs_reference())
    return runtime::invalid_argument(std::string(kReferencePath) + ": preference.loss=" + loss +
                                     " compares with no reference: leave it out");
  return {};
}

}  // namespace

Result<PreferenceObjective> PreferenceObjective::from_config(const Config& config) {
  ConfigReader read(config);
  PreferenceObjective out;
  const std::string loss = read.get_string("preference.loss");
  if (!read.status().ok()) return read.status();
  const auto named = std::find_if(kLosses.begin(), kLosses.end(),
                                  [&](const auto& entry) { return entry.first == loss; });
  if (named == kLosses.end())
    return runtime::invalid_argument("preference.loss: there is no '" + loss + "'");
  out.loss = named->second;
  Status status;
  if (out.is_reward_model()) {
    status = read_reward_model(config, out);
  } else {
    out.beta = read.find_float("preference.beta")
                   .value_or(out.loss == PreferenceLossKind::kSimpo ? 2.0 : 0.1);
    if (!read.status().ok()) return read.status();
    status = out.is_pairs() ? read_pairs(config, loss, out) : read_singles(config, out);
  }
  if (!status.ok()) return status;
  return out;
}

at::Tensor pair_objective(const PreferenceObjective& objective, const PairInputs& inputs,
                          const PreferenceTotals& totals, Metrics& metrics) {
  const double part = 1.0 / static_cast<double>(totals.rows);
  const PairLogprobs mean = per_token(inputs.policy, inputs.tokens);
  at::Tensor loss_P, chosen_P, rejected_P;  // the latter two: implicit rewards
  if (objective.loss == PreferenceLossKind::kOrpo) {
    loss_P = orpo_loss(mean, objective.beta);
    chosen_P = mean.chosen_P.detach() * objective.beta;
    rejected_P = mean.rejected_P.detach() * objective.beta;
    const at::Tensor ratio_P = log_odds_ratio(mean);
    metrics["nll_loss"] -= sum(mean.chosen_P) * part;
    metrics["log_odds_chosen"] += sum(ratio_P) * part;
    metrics["log_odds_ratio"] += sum(at::log_sigmoid(ratio_P)) * part;
  } else if (objective.loss == PreferenceLossKind::kSimpo) {
    loss_P = simpo_loss(mean, {.beta = objective.beta,
                               .gamma = objective.simpo_gamma,
                               .label_smoothing = objective.label_smoothing});
    chosen_P = mean.chosen_P.detach() * objective.beta;
    rejected_P = mean.rejected_P.detach() * objective.beta;
  } else {
    const DpoOptions options{.beta = objective.beta,
                             .loss = dpo_kind(objective.loss),
                             .label_smoothing = objective.label_smoothing};
    loss_P = (objective.average_logprobs
                  ? dpo_loss(mean, per_token(inputs.reference, inputs.tokens), options)
                  : dpo_loss(inputs.policy, inputs.reference, options))
                 .loss_P;
    chosen_P = (inputs.policy.chosen_P.detach() - inputs.reference.chosen_P) *
               objective.beta;  // of sums either way, as TRL reports them
    rejected_P = (inputs.policy.rejected_P.detach() - inputs.reference.rejected_P) * objective.beta;
    metrics["ref_logps/chosen"] += sum(inputs.reference.chosen_P) * part;
  }
  if (objective.sft_weight > 0) {
    loss_P = loss_P - mean.chosen_P * objective.sft_weight;
    metrics["nll_loss"] -= sum(mean.chosen_P) * part;
  }
  metrics["loss"] += sum(loss_P) * part;
  metrics["rewards/chosen"] += sum(chosen_P) * part;
  metrics["rewards/rejected"] += sum(rejected_P) * part;
  metrics["rewards/margins"] += sum(chosen_P - rejected_P) * part;
  metrics["rewards/accuracies"] += sum(chosen_P > rejected_P) * part;
  metrics["logps/chosen"] += sum(inputs.policy.chosen_P) * part;
  metrics["logps/rejected"] += sum(inputs.policy.rejected_P) * part;
  return loss_P.sum() * part;
}

at::Tensor single_objective(const PreferenceObjective& objective, const SingleInputs& inputs,
                            const PreferenceTotals& totals, Metrics& metrics) {
  const double part = 1.0 / static_cast<double>(totals.rows);
  const at::Tensor divergence = at::scalar_tensor(inputs.divergence);
  const at::Tensor is_wanted = inputs.wanted_P > 0.5;
  const KtoOptions wanted{.beta = objective.beta, .weight = objective.wanted_weight};
  const KtoOptions unwanted{.beta = objective.beta, .weight = objective.unwanted_weight};
  const at::Tensor loss_P =
      at::where(is_wanted, kto_loss(inputs.policy_P, inputs.reference_P, divergence, true, wanted),
                kto_loss(inputs.policy_P, inputs.reference_P, divergence, false, unwanted));
  const at::Tensor rewards_P = (inputs.policy_P.detach() - inputs.reference_P) * objective.beta;
  const at::Tensor right_P = (rewards_P > objective.beta * inputs.divergence) == is_wanted;
  metrics["loss"] += sum(loss_P) * part;
  metrics["kl"] += inputs.divergence * static_cast<double>(inputs.policy_P.numel()) * part;
  metrics["rewards/accuracies"] += sum(right_P) * part;
  for (const bool side : {true, false}) {
    const double count = static_cast<double>(side ? totals.wanted : totals.rows - totals.wanted);
    if (count == 0) continue;
    const at::Tensor mask_P = side ? inputs.wanted_P : 1.0 - inputs.wanted_P;
    const std::string name = side ? "chosen" : "rejected";
    const double reward = sum(rewards_P * mask_P) / count;
    metrics["rewards/" + name] += reward;
    metrics["logps/" + name] += sum(inputs.policy_P * mask_P) / count;
    if (side) metrics["ref_logps/chosen"] += sum(inputs.reference_P * mask_P) / count;
    if (totals.wanted > 0 && totals.wanted < totals.rows)
      metrics["rewards/margins"] += side ? reward : -reward;
  }
  return loss_P.sum() * part;
}

at::Tensor reward_objective(const PreferenceObjective& objective, const at::Tensor& chosen_P,
                            const at::Tensor& rejected_P, const at::Tensor& margin_P,
                            const PreferenceTotals& totals, Metrics& metrics) {
  const double part = 1.0 / static_cast<double>(totals.rows);
  at::Tensor loss_P = objective.use_margin ? bradley_terry_loss(chosen_P, rejected_P, margin_P)
                                           : bradley_terry_loss(chosen_P, rejected_P);
  if (objective.center_coefficient > 0)
    loss_P = loss_P + (chosen_P + rejected_P).square() * objective.center_coefficient;
  metrics["loss"] += sum(loss_P) * part;
  metrics["accuracy"] += sum(chosen_P > rejected_P) * part;
  metrics["margin"] += sum(chosen_P - rejected_P) * part;
  metrics["mean_reward"] += (sum(chosen_P) + sum(rejected_P)) * part / 2;
  return loss_P.sum() * part;
}

}  // namespace rl
