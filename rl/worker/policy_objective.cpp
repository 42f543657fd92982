#include "rl/worker/policy_objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "rl/algo/disco_loss.h"
#include "rl/algo/masked.h"
#include "rl/config/custom_choices.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kObjectiveActor = "actor_rollout_ref.actor.";
constexpr const char* kLossMode = "actor_rollout_ref.actor.policy_loss.loss_mode";

constexpr std::array kModes = {
    std::pair{"vanilla", PolicyLossMode::kVanilla},
    std::pair{"cispo", PolicyLossMode::kCispo},
    std::pair{"clip_cov", PolicyLossMode::kClipCov},
    std::pair{"dppo_kl", PolicyLossMode::kDppoKl},
    std::pair{"dppo_tv", PolicyLossMode::kDppoTv},
    std::pair{"dro", PolicyLossMode::kDro},
    std::pair{"disco", PolicyLossMode::kDisco},
    std::pair{"geo_mean", PolicyLossMode::kGeoMean},
    std::pair{"gpg", PolicyLossMode::kGpg},
    std::pair{"gspo", PolicyLossMode::kGspo},
    std::pair{"kl_cov", PolicyLossMode::kKlCov},
    std::pair{"sapo", PolicyLossMode::kSapo},
};

Result<PolicyLossMode> parse_loss_mode(const std::string& name) {
  std::string known;
  for (const auto& [text, mode] : kModes) {
    if (name == text) return mode;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  if (find_policy_loss(name) != nullptr) return PolicyLossMode::kCustom;
  for (const std::string& custom : added_choices(kLossMode)) known += ", " + custom;
  return runtime::invalid_argument("policy loss \"" + name + "\" is none of " + known +
                                   "; register a custom one in main before run(), in workers too");
}

// The loss of that name, with its numbers as the configuration has them.
CustomPolicyLoss read_custom_loss(ConfigReader& read, const std::string& name) {
  const CustomPolicyLoss* registered = find_policy_loss(name);
  if (registered == nullptr) return {};
  CustomPolicyLoss custom = *registered;
  for (auto& [key, value] : custom.numbers)
    value = read.find_float(std::string(kObjectiveActor) + "policy_loss." + key).value_or(value);
  return custom;
}

// algorithm.rollout_correction with bypass_mode=true and loss_type=reinforce replaces the policy
// loss.
Status read_rollout_correction(const Config& config, PolicyObjective& objective) {
  const std::string section = "algorithm.rollout_correction.";
  ConfigReader read(config);
  const bool bypass = read.get_bool(section + "bypass_mode");
  std::string loss = read.get_string(section + "loss_type");
  const std::optional<bool> policy_gradient =
      read.find_bool(section + "use_policy_gradient");  // what earlier releases had
  const std::string level = read.find_string(section + "rollout_is").value_or("");
  if (!read.status().ok()) return read.status();
  if (policy_gradient == true && !config.is_set(section + "loss_type")) loss = "reinforce";
  if (!bypass || loss != "reinforce") return {};
  objective.mode = PolicyLossMode::kReinforce;
  if (level.empty()) return {};
  const nlohmann::ordered_json* threshold = config.find(section + "rollout_is_threshold");
  if (threshold == nullptr)
    return config.out_of_range(section + "rollout_is_threshold", "a number, or LOWER_UPPER");
  const Result<ImportanceWeightOptions> weights = parse_importance_bounds(
      threshold->is_string() ? threshold->get<std::string>() : threshold->dump());
  if (!weights.ok()) return weights.status().with_context(section + "rollout_is_threshold");
  objective.weights = *weights;
  objective.weights->by_sequence = level == "sequence";
  return {};
}

Status check_disco(const Config& config, const DiscoOptions& disco, const std::string& score) {
  const std::string policy_loss = std::string(kObjectiveActor) + "policy_loss.";
  if (score != "logL" && score != "Lratio")
    return config.out_of_range(policy_loss + "score_func", "logL or Lratio");
  if (config.find_string("algorithm.adv_estimator").value_or(std::nullopt) != "disco") {
    return config.out_of_range("algorithm.adv_estimator",
                               "disco with policy_loss.loss_mode=disco, which learns from what is "
                               "right and what is wrong");
  }
  for (const char* key : {"algorithm.use_pf_ppo", "algorithm.mask_truncated"}) {
    if (config.find_bool(key).value_or(std::nullopt) == true)
      return config.out_of_range(
          key, "false with policy_loss.loss_mode=disco, where each sample counts once");
  }
  return {};
}

// Means over the mini-batch's tokens, these samples' share of them.
struct Shares {
  at::Tensor weight_BT;
  double tokens = 1.0;  // of the mini-batch

  double of(const at::Tensor& values_BT) const {
    return masked_sum(values_BT, weight_BT).item<double>() / tokens;
  }
};

// A policy loss, and the weights of tokens that it held back.
struct Surrogate {
  at::Tensor loss;
  at::Tensor clipped_BT;
  at::Tensor clipped_lower_BT;
};

// Losses that weigh each token by its ratio to the policy that generated it. Nothing: another kind.
std::optional<PolicyLoss> ratio_loss(const PolicyObjective& objective, const ObjectiveInputs& in) {
  const auto ratio_BT = [&] { return importance_ratio(in.logprobs_BT, in.old_logprobs_BT); };
  switch (objective.mode) {
    case PolicyLossMode::kVanilla:
      return clipped_surrogate(ratio_BT(), in.advantages_BT, objective.clip);
    case PolicyLossMode::kGspo: {
      // It has no dual clip. The paper's mean is over sequences of means over tokens
      // (seq-mean-token-mean); verl's, and so this one, is what loss_agg_mode says.
      const ClipOptions clip{.low = objective.clip.low, .high = objective.clip.high, .dual = {}};
      return clipped_surrogate(
          sequence_importance_ratio(in.logprobs_BT, in.old_logprobs_BT, in.mask_BT),
          in.advantages_BT, clip);
    }
    case PolicyLossMode::kCispo:
      return cispo_loss(in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT, objective.clip);
    case PolicyLossMode::kClipCov:
      return covariance_clipped_loss(ratio_BT(), in.advantages_BT, in.chosen_BT, objective.clip);
    case PolicyLossMode::kKlCov:
      return covariance_kl_loss(in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT, in.chosen_BT,
                                objective.covariance.kl_coefficient);
    case PolicyLossMode::kSapo:
      return sapo_loss(in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT, objective.sapo);
    case PolicyLossMode::kDppoTv:
      return dppo_loss(in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT,
                       TokenDivergence::kTotalVariation, objective.clip);
    case PolicyLossMode::kDppoKl:
      return dppo_loss(in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT, TokenDivergence::kKl,
                       objective.clip);
    case PolicyLossMode::kDro:
      return dro_loss(in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT, objective.dro_beta);
    case PolicyLossMode::kReinforce:
      return weighted_policy_gradient_loss(in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT,
                                           in.mask_BT, objective.weights);
    case PolicyLossMode::kGpg: return policy_gradient_loss(in.logprobs_BT, in.advantages_BT);
    case PolicyLossMode::kDisco:
    case PolicyLossMode::kGeoMean:
    case PolicyLossMode::kCustom: break;
  }
  return std::nullopt;
}

Surrogate disco_surrogate(const PolicyObjective& objective, const ObjectiveInputs& in,
                          const Aggregation& aggregation) {
  const at::Tensor held_BT =
      at::full_like(in.mask_BT, objective.disco.beta > 0 && in.kl_weight > 0 ? 1.0 : 0.0);
  return {disco_loss(in.logprobs_BT, in.old_logprobs_BT, in.mask_BT, in.weights_B,
                     objective.disco.score == DiscoScore::kLratio, in.kl_weight,
                     std::max(1.0, aggregation.tokens.value_or(1.0))),
          held_BT, at::zeros_like(in.mask_BT)};
}

Surrogate geometric_mean_surrogate(const PolicyObjective& objective, const ObjectiveInputs& in,
                                   const Aggregation& aggregation) {
  const SequencePolicyLoss sequences = geometric_mean_loss(
      in.logprobs_BT, in.old_logprobs_BT, in.advantages_BT, in.mask_BT, objective.clip);
  return {
      (sequences.loss_B * in.repeats_B).sum() / std::max(1.0, aggregation.sequences.value_or(1.0)),
      sequences.clipped_BT, sequences.clipped_lower_BT};
}

Result<Surrogate> surrogate(const PolicyObjective& objective, const ObjectiveInputs& in,
                            const Aggregation& aggregation) {
  if (objective.mode == PolicyLossMode::kDisco) return disco_surrogate(objective, in, aggregation);
  if (objective.mode == PolicyLossMode::kGeoMean)
    return geometric_mean_surrogate(objective, in, aggregation);
  std::optional<PolicyLoss> tokens = ratio_loss(objective, in);
  if (!tokens) {
    Result<PolicyLoss> own = objective.own.loss(in.logprobs_BT, in.old_logprobs_BT,
                                                in.advantages_BT, in.mask_BT, objective.clip);
    if (!own.ok()) return own.status();
    tokens = std::move(*own);
  }
  Aggregation how = aggregation;
  // The paper's loss is a mean over sequences of means over tokens.
  if (objective.mode == PolicyLossMode::kSapo) how.mode = AggregationMode::kSeqMeanTokenMean;
  return Surrogate{aggregate(tokens->loss_BT * in.repeats_B.unsqueeze(1), in.mask_BT, how),
                   tokens->clipped_BT, tokens->clipped_lower_BT};
}

// What rewards have the policy learn, and what keeps it from learning only that.
Result<at::Tensor> reward_loss(const PolicyObjective& objective, const ObjectiveInputs& in,
                               const MiniBatch& mini_batch, const Aggregation& aggregation,
                               const Shares& shares, Metrics& metrics) {
  const at::Tensor repeats_B1 = in.repeats_B.unsqueeze(1);
  const Result<Surrogate> policy = surrogate(objective, in, aggregation);
  if (!policy.ok()) return policy.status();
  at::Tensor loss = policy->loss;
  if (objective.entropy_coefficient != 0.0)
    loss = loss - aggregate(in.entropy_BT * repeats_B1, in.mask_BT, aggregation) *
                      objective.entropy_coefficient;
  if (objective.use_kl_loss) {
    const at::Tensor kl_loss =
        aggregate(kl_penalty(in.logprobs_BT, in.reference_BT, objective.kl_penalty) * repeats_B1,
                  in.mask_BT, aggregation);
    loss = loss + kl_loss * objective.kl_coefficient;
    metrics["actor/kl_loss"] += kl_loss.item<double>();
  }
  if (objective.positive_nll_coefficient != 0.0) {
    const double tokens = std::max(1.0, static_cast<double>(mini_batch.positive_tokens_total));
    const at::Tensor nll =
        -masked_sum(in.logprobs_BT, shares.weight_BT * in.positive_B.unsqueeze(1)) / tokens;
    loss = loss + nll * objective.positive_nll_coefficient;
    metrics["actor/positive_nll"] += nll.item<double>();
  }
  metrics["actor/pg_loss"] += policy->loss.item<double>();
  metrics["actor/pg_clipfrac"] += shares.of(policy->clipped_BT);
  metrics["actor/pg_clipfrac_lower"] += shares.of(policy->clipped_lower_BT);
  return loss;
}

}  // namespace

namespace {

// The names of the loss and of its aggregation, as they stand for what verl's earlier releases
// called some of their values.
struct LossNames {
  std::string loss;
  std::string aggregation;
};

LossNames read_loss_names(const Config& config, ConfigReader& read) {
  const std::string actor = kObjectiveActor;
  LossNames names{read.get_string(actor + "policy_loss.loss_mode"),
                  read.get_string(actor + "loss_agg_mode")};
  if (read.find_bool(actor + "use_gpg_loss") == true &&
      !config.is_set(actor + "policy_loss.loss_mode"))
    names.loss = "gpg";
  const std::optional<bool> token_level = read.find_bool(actor + "use_token_level_loss");
  if (token_level && !config.is_set(actor + "loss_agg_mode"))
    names.aggregation = *token_level ? "token-mean" : "seq-mean-token-mean";
  return names;
}

void read_numbers(ConfigReader& read, PolicyObjective& objective) {
  const std::string actor = kObjectiveActor;
  objective.clip = {.low = read.get_float(actor + "clip_ratio_low"),
                    .high = read.get_float(actor + "clip_ratio_high"),
                    .dual = read.get_float(actor + "clip_ratio_c")};
  objective.entropy_coefficient = read.get_float(actor + "entropy_coeff");
  objective.use_kl_loss = read.get_bool(actor + "use_kl_loss");
  objective.kl_coefficient = read.get_float(actor + "kl_loss_coef");
  objective.positive_nll_coefficient = read.get_float(actor + "positive_nll_coef");
  objective.horizon = read.find_float(actor + "loss_scale_factor")
                          .value_or(static_cast<double>(read.get_int("data.max_response_length")));
  const std::string policy_loss = actor + "policy_loss.";
  objective.covariance = {.clip_ratio = read.get_float(policy_loss + "clip_cov_ratio"),
                          .clip_lower = read.get_float(policy_loss + "clip_cov_lb"),
                          .clip_upper = read.get_float(policy_loss + "clip_cov_ub"),
                          .kl_ratio = read.get_float(policy_loss + "kl_cov_ratio"),
                          .kl_coefficient = read.get_float(policy_loss + "ppo_kl_coef")};
  objective.sapo = {.tau_positive = read.get_float(actor + "tau_pos"),
                    .tau_negative = read.get_float(actor + "tau_neg")};
  objective.disco = {
      .delta = read.find_float(policy_loss + "delta").value_or(objective.disco.delta),
      .beta = read.find_float(policy_loss + "beta").value_or(objective.disco.beta),
      .tau = read.find_float(policy_loss + "tau").value_or(objective.disco.tau)};
  objective.dro_beta = read.find_float(policy_loss + "dro_beta").value_or(0.0);
}

// What a policy loss asks of the other keys.
Status check_loss(const Config& config, const PolicyObjective& objective,
                  const std::string& disco_score) {
  const std::string actor = kObjectiveActor;
  const std::string policy_loss = actor + "policy_loss.";
  // GMPO clips logarithms, and CISPO's lower bound is often switched off by a clip_ratio_low
  // above 1.
  const bool clips_ratio =
      objective.mode == PolicyLossMode::kVanilla || objective.mode == PolicyLossMode::kGspo;
  if (clips_ratio && objective.clip.low > 1)
    return config.out_of_range(actor + "clip_ratio_low", "in [0, 1]");
  if (objective.mode == PolicyLossMode::kDro && !(objective.dro_beta > 0))
    return config.out_of_range(policy_loss + "dro_beta", "above 0 with policy_loss.loss_mode=dro");
  if (objective.mode == PolicyLossMode::kDisco)
    return check_disco(config, objective.disco, disco_score);
  if (config.find_string("algorithm.adv_estimator").value_or(std::nullopt) == "disco") {
    return config.out_of_range(
        policy_loss + "loss_mode",
        "disco with algorithm.adv_estimator=disco, whose labels no other loss has a use for");
  }
  return {};
}

}  // namespace

Result<PolicyObjective> PolicyObjective::from_config(const Config& config) {
  ConfigReader read(config);
  const std::string actor = kObjectiveActor;
  PolicyObjective objective;
  read_numbers(read, objective);
  const std::string score = read.find_string(actor + "policy_loss.score_func").value_or("logL");
  const LossNames names = read_loss_names(config, read);
  const std::string estimator = read.get_string(actor + "kl_loss_type");
  objective.own = read_custom_loss(read, names.loss);
  if (!read.status().ok()) return read.status();
  const Result<PolicyLossMode> loss_mode = parse_loss_mode(names.loss);
  if (!loss_mode.ok()) return loss_mode.status().with_context(kLossMode);
  objective.mode = *loss_mode;
  objective.disco.score = score == "Lratio" ? DiscoScore::kLratio : DiscoScore::kLogL;
  if (const Status fits = check_loss(config, objective, score); !fits.ok()) return fits;
  const Result<AggregationMode> aggregation = parse_aggregation_mode(names.aggregation);
  if (!aggregation.ok()) return aggregation.status().with_context(actor + "loss_agg_mode");
  objective.aggregation = *aggregation;
  const Result<KlPenalty> penalty = parse_kl_penalty(estimator);
  if (!penalty.ok()) return penalty.status().with_context(actor + "kl_loss_type");
  objective.kl_penalty = *penalty;
  if (const Status correction = read_rollout_correction(config, objective); !correction.ok())
    return correction;
  read.take(objective.distillation, DistillationObjective::from_config(config));
  if (!read.status().ok()) return read.status();
  return objective;
}

Result<at::Tensor> policy_objective(const PolicyObjective& objective, const ObjectiveInputs& in,
                                    const MiniBatch& mini_batch, Metrics& metrics) {
  const Aggregation aggregation{.mode = objective.aggregation,
                                .tokens = static_cast<double>(mini_batch.tokens_total),
                                .sequences = static_cast<double>(mini_batch.samples_total),
                                .horizon = objective.horizon};
  const Shares shares{.weight_BT = in.mask_BT * in.repeats_B.unsqueeze(1),
                      .tokens = std::max(1.0, static_cast<double>(mini_batch.tokens_total))};
  at::Tensor loss;
  if (objective.uses_rewards()) {
    Result<at::Tensor> rewarded =
        reward_loss(objective, in, mini_batch, aggregation, shares, metrics);
    if (!rewarded.ok()) return rewarded;
    loss = std::move(*rewarded);
  }
  if (objective.distillation) {
    const at::Tensor taught =
        teacher_loss(*objective.distillation, in, aggregation, shares.tokens, metrics);
    loss = loss.defined() ? loss + taught * objective.distillation->coefficient : taught;
  }
  metrics["actor/entropy"] += shares.of(in.entropy_BT.detach());
  metrics["actor/ppo_kl"] -= shares.of(log_ratio(in.logprobs_BT.detach(), in.old_logprobs_BT));
  return loss;
}

}  // namespace rl
