#include "rl/worker/distillation_objective.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <string>

#include "rl/algo/masked.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kLoss = "distillation.distillation_loss.";
constexpr const char* kDistillationActor = "actor_rollout_ref.actor.";

// Without task rewards the policy's own objective is left out, and with it these.
Status check_left_out(const Config& config) {
  const std::string actor = kDistillationActor;
  ConfigReader read(config);
  const bool kl_loss = read.get_bool(actor + "use_kl_loss");
  const double entropy = read.get_float(actor + "entropy_coeff");
  const double nll = read.get_float(actor + "positive_nll_coef");
  if (!read.status().ok()) return read.status();
  const char* key = kl_loss        ? "use_kl_loss"
                    : entropy != 0 ? "entropy_coeff"
                    : nll != 0     ? "positive_nll_coef"
                                   : nullptr;
  if (key == nullptr) return {};
  return config.out_of_range(
      actor + key, std::string(kl_loss ? "false" : "0") + " with " + kLoss +
                       "use_task_rewards=false, where the teacher is all that is learned from");
}

}  // namespace

Result<std::optional<DistillationObjective>> DistillationObjective::from_config(
    const Config& config) {
  const Result<bool> enabled = config.get_bool("distillation.enabled");
  if (!enabled.ok()) return enabled.status();
  if (!*enabled) return std::optional<DistillationObjective>();
  const std::string loss = kLoss;
  ConfigReader read(config);
  DistillationObjective objective;
  const std::string mode = read.get_string(loss + "loss_mode");
  objective.loss_max = read.find_float(loss + "loss_max_clamp");
  objective.policy_gradient = read.get_bool(loss + "use_policy_gradient");
  objective.clip.low = read.get_float(loss + "clip_ratio_low");
  objective.clip.high = read.get_float(loss + "clip_ratio_high");
  objective.task_rewards = read.get_bool(loss + "use_task_rewards");
  objective.coefficient = read.get_float(loss + "distillation_loss_coef");
  if (!read.status().ok()) return read.status();
  const Result<KlPenalty> estimator = parse_kl_penalty(mode);
  if (!estimator.ok()) return estimator.status().with_context(loss + "loss_mode");
  objective.estimator = *estimator;
  if (!objective.policy_gradient && objective.estimator.estimator == KlEstimator::kK1) {
    return runtime::invalid_argument(
        loss + "loss_mode=" + mode + " with " + loss +
        "use_policy_gradient=false: its gradient does not depend on the teacher; set "
        "use_policy_gradient=true, or loss_mode=k2 or k3");
  }
  if (objective.clip.low > 1)
    return config.out_of_range(loss + "clip_ratio_low",
                               "in [0, 1]");  // which is clip_ratio by default
  if (!objective.task_rewards) {
    if (const Status left_out = check_left_out(config); !left_out.ok()) return left_out;
  }
  return std::optional(objective);
}

at::Tensor teacher_loss(const DistillationObjective& objective, const ObjectiveInputs& in,
                        const Aggregation& aggregation, double tokens_total, Metrics& metrics) {
  const at::Tensor repeats_B1 = in.repeats_B.unsqueeze(1);
  const at::Tensor weight_BT = in.mask_BT * repeats_B1;
  const double tokens = std::max(1.0, tokens_total);
  const auto share = [&](const at::Tensor& values_BT) {
    return masked_sum(values_BT, weight_BT).item<double>() / tokens;
  };
  const at::Tensor estimate_BT = kl_penalty(in.logprobs_BT, in.teacher_BT, objective.estimator);
  metrics["distillation/kl"] += share(in.logprobs_BT.detach() - in.teacher_BT);
  metrics["distillation/abs_loss"] += share(estimate_BT.detach().abs());
  at::Tensor loss_BT = objective.loss_max
                           ? estimate_BT.clamp(-*objective.loss_max, *objective.loss_max)
                           : estimate_BT;
  if (objective.policy_gradient) {
    const PolicyLoss surrogate = clipped_surrogate(
        importance_ratio(in.logprobs_BT, in.old_logprobs_BT), -loss_BT.detach(), objective.clip);
    metrics["distillation/pg_clipfrac"] += share(surrogate.clipped_BT);
    metrics["distillation/pg_clipfrac_lower"] += share(surrogate.clipped_lower_BT);
    loss_BT = surrogate.loss_BT;
  }
  const at::Tensor loss = aggregate(loss_BT * repeats_B1, in.mask_BT, aggregation);
  metrics["distillation/loss"] += loss.item<double>();
  return loss;
}

}  // namespace rl
