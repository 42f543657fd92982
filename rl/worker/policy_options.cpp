#include "rl/worker/policy_options.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kActor = "actor_rollout_ref.actor.";
constexpr const char* kRollout = "actor_rollout_ref.rollout.";
// Activations of one forward and backward pass: about 2 MB a token for a model of 135 million parameters.
constexpr std::int64_t kMicroBatchTokens = 2048;

// "data.x: must be at least 1, got 0 (from the command line)"
Status out_of_range(const Config& config, const std::string& key, const std::string& expected) {
  const auto* value = config.find(key);
  return runtime::invalid_argument(key + ": must be " + expected + ", got " + (value != nullptr ? value->dump() : "nothing") + " (" +
                                   config.origin(key) + ")");
}

SamplingOptions read_sampling(ConfigReader& read, const std::string& prefix) {
  return {.samples = read.get_int(prefix + "n"),
          .temperature = static_cast<float>(read.get_float(prefix + "temperature")),
          .top_p = static_cast<float>(read.get_float(prefix + "top_p")),
          .top_k = read.get_int(prefix + "top_k"),
          .response_tokens_max = read.get_int("data.max_response_length")};
}

Result<PolicyObjective> read_objective(const Config& config) {
  ConfigReader read(config);
  const std::string actor = kActor;
  PolicyObjective objective;
  objective.clip = {.low = read.get_float(actor + "clip_ratio_low"),
                    .high = read.get_float(actor + "clip_ratio_high"),
                    .dual = read.get_float(actor + "clip_ratio_c")};
  objective.entropy_coefficient = read.get_float(actor + "entropy_coeff");
  objective.use_kl_loss = read.get_bool(actor + "use_kl_loss");
  objective.kl_coefficient = read.get_float(actor + "kl_loss_coef");
  const std::string mode = read.get_string(actor + "loss_agg_mode");
  const std::string estimator = read.get_string(actor + "kl_loss_type");
  if (!read.status().ok()) return read.status();
  if (objective.clip.low < 0 || objective.clip.low >= 1) return out_of_range(config, actor + "clip_ratio_low", "in [0, 1)");
  if (objective.clip.high < 0) return out_of_range(config, actor + "clip_ratio_high", "at least 0");
  if (*objective.clip.dual <= 1) return out_of_range(config, actor + "clip_ratio_c", "above 1");
  const Result<AggregationMode> aggregation = parse_aggregation_mode(mode);
  if (!aggregation.ok()) return aggregation.status().with_context(actor + "loss_agg_mode");
  const Result<KlPenalty> penalty = parse_kl_penalty(estimator);
  if (!penalty.ok()) return penalty.status().with_context(actor + "kl_loss_type");
  objective.aggregation = *aggregation;
  objective.kl_penalty = *penalty;
  return objective;
}

Result<LearnerOptions> read_learner(const Config& config) {
  ConfigReader read(config);
  const std::string optim = std::string(kActor) + "optim.";
  const std::vector<double> betas = read.get_floats(optim + "betas");
  LearnerOptions options;
  options.adamw.weight_decay = static_cast<float>(read.get_float(optim + "weight_decay"));
  options.grad_norm_max = read.get_float(std::string(kActor) + "grad_clip");
  if (!read.status().ok()) return read.status();
  const bool valid = betas.size() == 2 && betas[0] >= 0 && betas[0] < 1 && betas[1] >= 0 && betas[1] < 1;
  if (!valid) return out_of_range(config, optim + "betas", "two numbers in [0, 1)");
  if (options.adamw.weight_decay < 0) return out_of_range(config, optim + "weight_decay", "at least 0");
  options.adamw.beta1 = static_cast<float>(betas[0]);
  options.adamw.beta2 = static_cast<float>(betas[1]);
  return options;
}

}  // namespace

Result<PolicyOptions> PolicyOptions::from_config(const Config& config) {
  ConfigReader read(config);
  const std::string rollout = kRollout;
  const std::string actor = kActor;
  PolicyOptions options;
  options.training = read_sampling(read, rollout);
  options.validation = read_sampling(read, rollout + "val_kwargs.");
  if (!read.get_bool(rollout + "val_kwargs.do_sample")) options.validation.temperature = 0.0F;
  options.epochs = read.get_int(actor + "ppo_epochs");
  options.micro_batch.samples_max = read.find_int(actor + "ppo_micro_batch_size_per_gpu").value_or(0);
  const std::int64_t prompt_tokens_max = read.get_int("data.max_prompt_length");
  options.model = read.get_string("actor_rollout_ref.model.path");
  if (!read.status().ok()) return read.status();

  // A size in samples is the user's word; without one the limit is in tokens.
  if (options.micro_batch.samples_max == 0) options.micro_batch.tokens_max = kMicroBatchTokens;
  options.positions_max = prompt_tokens_max + options.training.response_tokens_max;
  if (options.training.samples < 1) return out_of_range(config, rollout + "n", "at least 1");
  if (options.validation.samples < 1) return out_of_range(config, rollout + "val_kwargs.n", "at least 1");
  if (!(options.training.temperature > 0)) return out_of_range(config, rollout + "temperature", "above 0 to train");
  for (const auto& [sampling, prefix] : {std::pair(&options.training, rollout), std::pair(&options.validation, rollout + "val_kwargs.")}) {
    if (!(sampling->top_p > 0 && sampling->top_p <= 1)) return out_of_range(config, prefix + "top_p", "above 0 and at most 1");
    if (sampling->top_k < -1) return out_of_range(config, prefix + "top_k", "a number of tokens, or 0 or -1 for all");
  }
  if (options.epochs < 1) return out_of_range(config, actor + "ppo_epochs", "at least 1");
  if (options.micro_batch.samples_max < 0) return out_of_range(config, actor + "ppo_micro_batch_size_per_gpu", "at least 1");
  if (prompt_tokens_max < 1) return out_of_range(config, "data.max_prompt_length", "at least 1");
  if (options.training.response_tokens_max < 1) return out_of_range(config, "data.max_response_length", "at least 1");

  Result<PolicyObjective> objective = read_objective(config);
  if (!objective.ok()) return objective.status();
  options.objective = *objective;
  Result<LearnerOptions> learner = read_learner(config);
  if (!learner.ok()) return learner.status();
  options.learner = *learner;
  return options;
}

Result<LrScheduleOptions> lr_schedule_from_config(const Config& config, std::int64_t total_steps) {
  ConfigReader read(config);
  const std::string optim = std::string(kActor) + "optim.";
  LrScheduleOptions options;
  options.peak = read.get_float(optim + "lr");
  options.min_ratio = read.get_float(optim + "min_lr_ratio");
  options.cycles = read.get_float(optim + "num_cycles");
  const std::string kind = read.get_string(optim + "lr_scheduler_type");
  const std::int64_t own_total = read.get_int(optim + "total_training_steps");
  const std::int64_t warmup = read.get_int(optim + "lr_warmup_steps");
  const double warmup_ratio = read.get_float(optim + "lr_warmup_steps_ratio");
  if (!read.status().ok()) return read.status();
  const Result<LrScheduleOptions::Kind> parsed = parse_lr_schedule(kind);
  if (!parsed.ok()) return parsed.status().with_context(optim + "lr_scheduler_type");
  if (!(options.peak >= 0) || !std::isfinite(options.peak)) return out_of_range(config, optim + "lr", "at least 0");
  if (options.min_ratio < 0 || options.min_ratio > 1) return out_of_range(config, optim + "min_lr_ratio", "in [0, 1]");
  if (warmup_ratio < 0 || warmup_ratio > 1) return out_of_range(config, optim + "lr_warmup_steps_ratio", "in [0, 1]");
  options.kind = *parsed;
  options.total_steps = own_total > 0 ? own_total : total_steps;
  options.warmup_steps = warmup >= 0 ? warmup : static_cast<std::int64_t>(warmup_ratio * static_cast<double>(options.total_steps));
  return options;
}

}  // namespace rl
