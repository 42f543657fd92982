#include "rl/worker/policy_options.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "rl/data/prompt_builder.h"
#include "rl/worker/compression_keys.h"
#include "rl/worker/fsdp_size.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/zero_level.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kActor = "actor_rollout_ref.actor.";
constexpr const char* kSharedHead = "actor_rollout_ref.model.custom_forward";
constexpr const char* kRollout = "actor_rollout_ref.rollout.";
// Activations of one forward and backward pass: about 2 MB a token for a model of 135 million
// parameters. More tokens fill a GPU better; on a CPU they only cost memory.
constexpr std::int64_t kMicroBatchTokens = 2048;
constexpr std::int64_t kDeviceMicroBatchTokens = 16'384;

// FIRE's hot first token; Chen et al. 2024, arXiv:2410.21236, section 3.
constexpr float kFireTemperature = 30.0F;
constexpr std::int64_t kFireTopK = 16;

bool is_cpu(const std::string& device) { return device.empty() || device.starts_with("cpu"); }

SamplingOptions read_sampling(ConfigReader& read, const std::string& prefix) {
  return {.samples = read.get_int(prefix + "n"),
          .temperature = static_cast<float>(read.get_float(prefix + "temperature")),
          .top_p = static_cast<float>(read.get_float(prefix + "top_p")),
          .top_k = read.get_int(prefix + "top_k"),
          .response_tokens_max = read.get_int("data.max_response_length"),
          .response_tokens_min = read.find_int("data.min_response_length").value_or(0),
          .repetition_penalty = static_cast<float>(
              read.find_float(std::string(kRollout) + "repetition_penalty").value_or(1.0)),
          .ignore_eos = read.get_bool(std::string(kRollout) + "ignore_eos")};
}

}  // namespace

std::string optim_section(const std::string& role) {
  return (role.empty() ? "" : role + ".") + "optim.";
}

Result<LearnerOptions> learner_from_config(const Config& config, const std::string& role) {
  ConfigReader read(config);
  const std::string optim = optim_section(role);
  const std::vector<double> betas = read.get_floats(optim + "betas");
  LearnerOptions options;
  options.adamw.weight_decay = static_cast<float>(read.get_float(optim + "weight_decay"));
  options.grad_norm_max =
      read.get_float(role == kStageRole ? optim + "clip_grad" : role + ".grad_clip");
  options.decay_norms = read.get_bool(optim + "decay_norms");
  const std::string name = read.get_string(optim + "optimizer");
  const std::string override = optim + "override_optimizer_config.";
  const std::optional<double> momentum = read.find_float(override + "momentum");
  const std::optional<bool> nesterov = read.find_bool(override + "nesterov");
  const std::optional<std::string> adjust = read.find_string(override + "adjust_lr_fn");
  if (!read.status().ok()) return read.status();
  if (betas.size() != 2) return config.out_of_range(optim + "betas", "two numbers");
  options.adamw.beta1 = static_cast<float>(betas[0]);
  options.adamw.beta2 = static_cast<float>(betas[1]);
  const Result<OptimizerKind> kind = parse_optimizer(name);
  if (!kind.ok()) return kind.status().with_context(optim + "optimizer");
  options.optimizer = *kind;
  const Result<ZeroLevel> zero = zero_level_from_config(config, role);
  if (!zero.ok()) return zero.status();
  options.zero = *zero;
  const Result<std::int64_t> shard_ranks = shard_ranks_from_config(config, role);
  if (!shard_ranks.ok()) return shard_ranks.status();
  options.shard_ranks = *shard_ranks;
  const Result<PassSharing> sharing = pass_sharing_from_config(config, role);
  if (!sharing.ok()) return sharing.status();
  options.sharing = *sharing;
  const Result<GradientCompressionOptions> compression = compression_from_config(config, role);
  if (!compression.ok()) return compression.status();
  options.compression = *compression;
  if (role != kStageRole) {  // stages have no such key
    options.reshard_after_forward =
        read.find_bool(sharding_section(role) + ".reshard_after_forward").value_or(true);
    if (!read.status().ok()) return read.status();
  }
  options.sgd.weight_decay = options.muon.weight_decay = options.adamw.weight_decay;
  options.sgd.momentum = static_cast<float>(momentum.value_or(options.sgd.momentum));
  options.muon.momentum = static_cast<float>(momentum.value_or(options.muon.momentum));
  options.sgd.nesterov = nesterov.value_or(options.sgd.nesterov);
  options.muon.nesterov = nesterov.value_or(options.muon.nesterov);
  options.muon.match_adamw = adjust.value_or("match_rms_adamw") == "match_rms_adamw";
  return options;
}

namespace {

// What bounds the passes of a role: a number of samples, or of tokens where passes are filled by
// these.
struct PassKeys {
  std::string samples;
  std::string by_tokens;
  std::string tokens;
};

// Nothing: no key says.
Result<std::optional<MicroBatchLimits>> read_passes(const Config& config, const PassKeys& keys,
                                                    const std::string& device) {
  ConfigReader read(config);
  const std::int64_t samples = read.find_int(keys.samples).value_or(0);
  const bool by_tokens = read.get_bool(keys.by_tokens);
  const std::int64_t tokens = read.get_int(keys.tokens);
  if (!read.status().ok()) return read.status();
  if (by_tokens)
    return std::optional(MicroBatchLimits{
        .samples_max = 0,
        .tokens_max = is_cpu(device) ? std::min(tokens, kMicroBatchTokens) : tokens});
  if (samples > 0) return std::optional(MicroBatchLimits{.samples_max = samples, .tokens_max = 0});
  return std::optional<MicroBatchLimits>();
}

}  // namespace

Result<MicroBatchLimits> micro_batch_from_config(const Config& config, const std::string& role,
                                                 const std::string& device) {
  const auto limits = read_passes(config,
                                  {role + ".ppo_micro_batch_size_per_gpu",
                                   role + ".use_dynamic_bsz", role + ".ppo_max_token_len_per_gpu"},
                                  device);
  if (!limits.ok()) return limits.status();
  return limits->value_or(
      MicroBatchLimits{.samples_max = 0,
                       .tokens_max = is_cpu(device) ? kMicroBatchTokens : kDeviceMicroBatchTokens});
}

Result<MicroBatchLimits> scoring_batch_from_config(const Config& config, const std::string& role,
                                                   const std::string& device) {
  const bool critic = role == kCriticRole;
  const PassKeys keys =
      critic
          ? PassKeys{role + ".forward_micro_batch_size_per_gpu", role + ".use_dynamic_bsz",
                     role + ".forward_max_token_len_per_gpu"}
          : PassKeys{role + ".log_prob_micro_batch_size_per_gpu",
                     role + ".log_prob_use_dynamic_bsz", role + ".log_prob_max_token_len_per_gpu"};
  const auto limits = read_passes(config, keys, device);
  if (!limits.ok()) return limits.status();
  if (!*limits) return micro_batch_from_config(config, critic ? kCriticRole : kActorRole, device);
  MicroBatchLimits found = **limits;
  if (is_cpu(device))
    found.tokens_max =
        found.tokens_max > 0 ? std::min(found.tokens_max, kMicroBatchTokens) : kMicroBatchTokens;
  return found;
}

Result<std::optional<AdapterOptions>> AdapterOptions::from_config(const Config& config,
                                                                  const std::string& section) {
  const std::string model = section + ".";
  ConfigReader read(config);
  AdapterOptions options;
  options.lora.rank = read.get_int(model + "lora_rank");
  options.lora.alpha = read.get_float(model + "lora_alpha");
  options.lora.dropout = read.get_float(model + "lora_dropout");
  options.lora.target_modules = read.get_strings(model + "target_modules");
  options.lora.exclude_modules =
      read.find_strings(model + "exclude_modules").value_or(std::vector<std::string>{});
  options.folder = read.find_string(model + "lora_adapter_path").value_or("");
  options.seed = static_cast<std::uint64_t>(read.find_int("trainer.seed").value_or(0));
  if (!read.status().ok()) return read.status();
  if (options.lora.rank == 0 && options.folder.empty()) return std::optional<AdapterOptions>();
  if (options.folder.empty()) {
    if (const Status valid = options.lora.validate(); !valid.ok())
      return valid.with_context(section);
  }
  return std::optional(options);
}

Status use_adapter(Transformer& model, const AdapterOptions& options) {
  constexpr const char* kName = "default";
  Result<LoraAdapter> adapter =
      options.folder.empty() ? LoraAdapter::create(model.config(), options.lora, options.seed)
                             : LoraAdapter::load(model.config(), options.folder);
  if (!adapter.ok()) return adapter.status();
  if (const Status added = model.add_adapter(kName, std::move(*adapter)); !added.ok()) return added;
  model.dropout_passes().seed(options.seed);
  return model.use_adapter(kName);
}

Result<std::optional<SharedCriticOptions>> SharedCriticOptions::from_config(const Config& config) {
  ConfigReader read(config);
  const bool shared = read.find_bool(kSharedHead).value_or(false);
  const std::string estimator = read.get_string("algorithm.adv_estimator");
  SharedCriticOptions options;
  options.loss_coefficient = read.get_float(std::string(kActor) + "value_loss_coef");
  options.seed = static_cast<std::uint64_t>(read.find_int("trainer.seed").value_or(0));
  if (!read.status().ok()) return read.status();
  if (!shared) return std::optional<SharedCriticOptions>();
  const Result<const AdvantageEstimator*> named = parse_advantage_estimator(estimator);
  if (!named.ok()) return named.status().with_context("algorithm.adv_estimator");
  if (!(*named)->traits().needs_critic) {
    return runtime::invalid_argument(
        std::string(kSharedHead) +
        "=true puts the critic's head on the policy, and algorithm.adv_estimator=" + estimator +
        " has no critic; set it to gae, or leave custom_forward out");
  }
  const Result<ValueObjective> objective = ValueObjective::from_config(config);
  if (!objective.ok()) return objective.status();
  options.objective = *objective;
  return std::optional(options);
}

Result<OffloadOptions> offload_from_config(const Config& config, const std::string& section) {
  ConfigReader read(config);
  OffloadOptions options;
  const bool all =
      read.find_bool(section + ".offload_policy").value_or(false);  // FSDP2's name for it
  options.parameters = read.find_bool(section + ".param_offload").value_or(false) || all;
  options.gradients = read.find_bool(section + ".grad_offload").value_or(false) || all;
  const std::string megatron =
      section.substr(0, section.rfind('.')) + ".megatron";  // next to the section of FSDP
  options.parameters =
      options.parameters || read.find_bool(megatron + ".param_offload").value_or(false);
  options.gradients =
      options.gradients || read.find_bool(megatron + ".grad_offload").value_or(false);
  if (!read.status().ok()) return read.status();
  return options;
}

Result<bool> computes_in_bf16(const Config& config, const std::string& key,
                              const std::string& device) {
  const Result<std::string> dtype = config.get_string(key);
  if (!dtype.ok()) return dtype.status();
  if (*dtype == "bfloat16" || *dtype == "bf16") return true;
  return !is_cpu(device) && !config.is_set(key);
}

Result<EngineLimits> EngineLimits::from_config(const Config& config, const std::string& device) {
  const std::string rollout = kRollout;
  ConfigReader read(config);
  const std::int64_t sequences = read.get_int(rollout + "max_num_seqs");
  const std::int64_t tokens = read.get_int(rollout + "max_num_batched_tokens");
  EngineLimits limits;
  limits.utilization = read.get_float(rollout + "gpu_memory_utilization");
  if (!read.status().ok()) return read.status();
  const auto counts = [&](const char* key) {
    return !is_cpu(device) || config.is_set(rollout + key);
  };
  if (counts("max_num_seqs")) limits.sequences_max = sequences;
  if (counts("max_num_batched_tokens")) limits.step_tokens_max = tokens;
  return limits;
}

Result<CriticOptions> CriticOptions::from_config(const Config& config, const std::string& device) {
  ConfigReader read(config);
  CriticOptions options;
  options.device = device;
  options.epochs = read.get_int("critic.ppo_epochs");
  options.recompute_layers = read.get_bool("critic.model.enable_gradient_checkpointing");
  options.seed = static_cast<std::uint64_t>(read.find_int("trainer.seed").value_or(0));
  const std::int64_t mini_batch = read.get_int("critic.ppo_mini_batch_size");
  const std::int64_t actors = read.get_int("actor_rollout_ref.actor.ppo_mini_batch_size");
  if (!read.status().ok()) return read.status();
  if (mini_batch != actors)
    return config.out_of_range(
        "critic.ppo_mini_batch_size",
        "what actor_rollout_ref.actor.ppo_mini_batch_size is, " + std::to_string(actors));
  const Result<bool> bf16 = computes_in_bf16(config, "critic.fsdp.dtype", device);
  if (!bf16.ok()) return bf16.status();
  options.bf16 = *bf16;
  const Result<LearnerOptions> learner = learner_from_config(config, kCriticRole);
  if (!learner.ok()) return learner.status();
  options.learner = *learner;
  const Result<OffloadOptions> offload = offload_from_config(config, "critic.fsdp");
  if (!offload.ok()) return offload.status();
  options.learner.offload = *offload;
  const Result<MicroBatchLimits> micro_batch = micro_batch_from_config(config, kCriticRole, device);
  if (!micro_batch.ok()) return micro_batch.status();
  options.micro_batch = *micro_batch;
  const Result<MicroBatchLimits> scoring_batch =
      scoring_batch_from_config(config, kCriticRole, device);
  if (!scoring_batch.ok()) return scoring_batch.status();
  options.scoring_batch = *scoring_batch;
  const Result<ValueObjective> objective = ValueObjective::from_config(config);
  if (!objective.ok()) return objective.status();
  options.objective = *objective;
  const Result<EstimateOptions> estimates = EstimateOptions::from_config(config);
  if (!estimates.ok()) return estimates.status();
  options.estimates = *estimates;
  return options;
}

namespace {

Status check_lengths(const Config& config, const PolicyOptions& options,
                     std::int64_t prompt_tokens_max) {
  const std::string rollout = kRollout;
  ConfigReader read(config);
  const std::int64_t rollout_prompt_tokens = read.get_int(rollout + "prompt_length");
  const std::int64_t rollout_response_tokens = read.get_int(rollout + "response_length");
  if (!read.status().ok()) return read.status();
  if (options.training.response_tokens_min > options.training.response_tokens_max) {
    return config.out_of_range("data.min_response_length",
                               "from 0 to data.max_response_length, " +
                                   std::to_string(options.training.response_tokens_max));
  }

  if (rollout_prompt_tokens != prompt_tokens_max)
    return config.out_of_range(rollout + "prompt_length", "what data.max_prompt_length is, " +
                                                              std::to_string(prompt_tokens_max));
  if (rollout_response_tokens != options.training.response_tokens_max) {
    return config.out_of_range(rollout + "response_length",
                               "what data.max_response_length is, " +
                                   std::to_string(options.training.response_tokens_max));
  }
  return {};
}

// In bf16 the old log-probs are those of the present weights; of samples that other weights
// generated they are not.
Status settle_precision(const Config& config, ConfigReader& read, PolicyOptions& options) {
  const std::string key = std::string(kActor) + "fsdp_config.dtype";
  const bool replays = read.find_bool("sample_store.enable").value_or(false);
  const bool generates_separately =
      !read.find_bool("actor_rollout_ref.hybrid_engine").value_or(true);
  const std::string mode = read.find_string("trainer.v1.trainer_mode").value_or("sync");
  const bool generates_ahead = mode == "separate_async" || mode == "colocate_async";
  options.samples_are_older = replays || generates_separately || generates_ahead;
  if (read.status().ok() && options.learner.zero == ZeroLevel::kWeights &&
      (generates_separately || generates_ahead)) {
    return config.out_of_range(zero_level_key(kActorRole),
                               "at most 2 with " +
                                   (generates_ahead ? "trainer.v1.trainer_mode=" + mode
                                                    : "actor_rollout_ref.hybrid_engine=false") +
                                   ": weights go from one worker to those that generate");
  }
  if (!read.status().ok()) return read.status();
  if (options.samples_are_older && !config.is_set(key)) options.bf16 = false;
  if (!options.bf16 || !options.samples_are_older) return {};
  const std::string why = replays           ? "sample_store.enable=true"
                          : generates_ahead ? "trainer.v1.trainer_mode=" + mode
                                            : "actor_rollout_ref.hybrid_engine=false";
  return runtime::unimplemented(key + "=bfloat16 with " + why +
                                ": samples of earlier weights need the log-probs of their "
                                "generation; set only one of the two");
}

}  // namespace

Result<PolicyOptions> PolicyOptions::from_config(const Config& config, const std::string& device) {
  ConfigReader read(config);
  const std::string rollout = kRollout;
  const std::string actor = kActor;
  PolicyOptions options;
  options.device = device;
  options.training = read_sampling(read, rollout);
  options.validation = read_sampling(read, rollout + "val_kwargs.");
  if (!read.get_bool(rollout + "val_kwargs.do_sample")) options.validation.temperature = 0.0F;
  if (read.find_bool(rollout + "use_fire_sampling").value_or(false)) {
    options.training.first_temperature = kFireTemperature;
    options.training.first_top_k = kFireTopK;
  }
  options.deterministic_rollouts = read.get_bool(rollout + "deterministic");
  options.epochs = read.get_int(actor + "ppo_epochs");
  options.probes_variance = read.get_bool(actor + "calculate_sum_pi_squared");
  const std::int64_t prompt_tokens_max = read.get_int("data.max_prompt_length");
  options.model = read.get_string("actor_rollout_ref.model.path");
  options.recompute_layers = read.get_bool("actor_rollout_ref.model.enable_gradient_checkpointing");
  if (!read.status().ok()) return read.status();
  read.take(options.bf16, computes_in_bf16(config, actor + "fsdp_config.dtype", device));
  read.take(options.engine, EngineLimits::from_config(config, device));
  options.positions_max = prompt_tokens_max + options.training.response_tokens_max;
  read.check(check_lengths(config, options, prompt_tokens_max));

  read.take(options.objective, PolicyObjective::from_config(config));
  read.take(options.estimates, EstimateOptions::from_config(config));
  read.take(options.learner, learner_from_config(config, kActorRole));
  read.take(options.learner.offload, offload_from_config(config, actor + "fsdp_config"));
  read.take(options.micro_batch, micro_batch_from_config(config, kActorRole, device));
  read.take(options.scoring_batch, scoring_batch_from_config(config, kRolloutRole, device));
  // The reference's own, found wrong before it starts.
  read.check(scoring_batch_from_config(config, kReferenceRole, device).status());
  read.take(options.agent, AgentOptions::from_config(config));
  PromptOptions prompts;
  read.take(prompts, PromptOptions::from_config(config));
  options.chat_template = std::move(prompts.chat_template);
  options.template_variables = std::move(prompts.template_variables);
  read.take(options.adapter, AdapterOptions::from_config(config));
  read.take(options.critic, SharedCriticOptions::from_config(config));
  if (!read.status().ok()) return read.status();
  if (options.agent && options.training.first_temperature > 0.0F) {
    return runtime::unimplemented(
        rollout +
        "use_fire_sampling=true with several turns: which of a conversation's first tokens are hot "
        "is not said; leave one of the two out");
  }
  if (const Status fits = settle_precision(config, read, options); !fits.ok()) return fits;
  if (options.critic && options.adapter) {
    return runtime::unimplemented(
        "actor_rollout_ref.model.custom_forward=true with lora_rank: an adapter leaves the model's "
        "weights as they are, a head on it included. Leave custom_forward out, and the critic is a "
        "separate model");
  }
  return options;
}

namespace {

// The schedule by the one of its names that is set: FSDP's, Megatron's or torchtitan's.
Result<LrScheduleOptions::Kind> read_schedule_kind(const Config& config, const std::string& optim) {
  const std::string own = optim + "lr_scheduler_type";
  ConfigReader read(config);
  std::string key = own;
  std::string name = read.get_string(own);
  for (const char* other : {"lr_decay_style", "decay_type"}) {
    const std::optional<std::string> value = read.find_string(optim + other);
    if (!value) continue;
    const std::string meant = *value == "WSD" ? "wsd" : *value;
    if ((key != own || config.is_set(own)) && meant != name) {
      return runtime::invalid_argument(
          key + "=" + name + " and " + optim + other + "=" + *value +
          " are two names of the schedule, with different values: leave one out");
    }
    key = optim + other;
    name = meant;
  }
  if (!read.status().ok()) return read.status();
  const Result<LrScheduleOptions::Kind> parsed = parse_lr_schedule(name);
  if (!parsed.ok()) return parsed.status().with_context(key);
  return parsed;
}

// A share of the peak that other engines have other keys for, some of which say the rate itself. 0
// says nothing.
struct ShareKey {
  const char* key;
  bool is_rate;
};

Result<double> read_share(const Config& config, const std::string& optim,
                          std::initializer_list<ShareKey> keys, double peak) {
  std::string found;
  double share = 0.0;
  for (const auto& [name, is_rate] : keys) {
    const std::string key = optim + name;
    const Result<std::optional<double>> value = config.find_float(key);
    if (!value.ok()) return value.status();
    const double given = value->value_or(0.0);
    if (is_rate && given > peak) return config.out_of_range(key, "from 0 to " + optim + "lr");
    if (given == 0.0) continue;
    const double meant = is_rate ? given / peak : given;
    if (!found.empty() && std::abs(meant - share) > 1e-9 * share)
      return runtime::invalid_argument(found + " and " + key +
                                       " say the same thing with different values: leave one out");
    found = key;
    share = meant;
  }
  return share;
}

}  // namespace

Result<LrScheduleOptions> lr_schedule_from_config(const Config& config, const std::string& role,
                                                  std::int64_t total_steps) {
  ConfigReader read(config);
  const std::string optim = optim_section(role);
  LrScheduleOptions options;
  options.peak = read.get_float(optim + "lr");
  options.cycles = read.get_float(optim + "num_cycles");
  options.decay_ratio = read.get_float(optim + "lr_decay_ratio");
  const std::int64_t own_total = read.get_int(optim + "total_training_steps");
  const std::int64_t warmup = read.get_int(optim + "lr_warmup_steps");
  const double warmup_ratio = read.get_float(optim + "lr_warmup_steps_ratio");
  const std::optional<std::int64_t> decay_steps = read.find_int(optim + "lr_decay_steps");
  if (!read.status().ok()) return read.status();
  const Result<LrScheduleOptions::Kind> kind = read_schedule_kind(config, optim);
  if (!kind.ok()) return kind.status();
  const Result<double> end = read_share(
      config, optim,
      {{"min_lr_ratio", false}, {"min_lr_factor", false}, {"min_lr", true}, {"lr_min", true}},
      options.peak);
  if (!end.ok()) return end.status();
  const Result<double> begin =
      read_share(config, optim, {{"init_lr_ratio", false}, {"lr_warmup_init", true}}, options.peak);
  if (!begin.ok()) return begin.status();
  options.kind = *kind;
  options.min_ratio = *end;
  options.start_ratio = *begin;
  const std::int64_t steps = own_total > 0 ? own_total : total_steps;
  options.warmup_steps =
      warmup > 0 ? warmup : static_cast<std::int64_t>(warmup_ratio * static_cast<double>(steps));
  options.total_steps = decay_steps.value_or(steps);
  return options;
}

}  // namespace rl
