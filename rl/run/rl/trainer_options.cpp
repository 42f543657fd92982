#include "rl/run/rl/trainer_options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rl/run/gradient_leaves.h"
namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// What algorithm.* says besides the estimator.
Status read_algorithm(const Config& config, TrainerOptions& options) {
  ConfigReader read(config);
  options.normalize_by_std = read.get_bool("algorithm.norm_adv_by_std_in_grpo");
  options.kl_in_reward = read.get_bool("algorithm.use_kl_in_reward");
  options.kl_control = {.coefficient = read.get_float("algorithm.kl_ctrl.kl_coef"),
                        .adaptive = read.get_string("algorithm.kl_ctrl.type") == "adaptive",
                        .target = read.get_float("algorithm.kl_ctrl.target_kl"),
                        .horizon = read.get_float("algorithm.kl_ctrl.horizon")};
  options.filter_groups = {
      .enabled = read.get_bool("algorithm.filter_groups.enable"),
      .rounds_max = read.get_int("algorithm.filter_groups.max_num_gen_batches"),
      .metric = read.get_string("algorithm.filter_groups.metric")};
  options.gen_batch_prompts = read.find_int("data.gen_batch_size").value_or(options.batch_prompts);
  // There verl hands prompts on in pieces of gen_batch_size while others are trained on: here they
  // come in whole steps.
  if (read.get_string("trainer.v1.trainer_mode").ends_with("_async"))
    options.gen_batch_prompts = options.batch_prompts;
  options.reward_scaling = {.baseline = read.get_bool("algorithm.reward_baseline"),
                            .normalize = read.get_bool("algorithm.normalize_reward"),
                            .decay = read.get_float("algorithm.reward_decay")};
  options.mask_truncated = read.get_bool("algorithm.mask_truncated");
  const bool pf_ppo = read.get_bool("algorithm.use_pf_ppo");
  const std::string reweight_method = read.get_string("algorithm.pf_ppo.reweight_method");
  const double weight_pow = read.get_float("algorithm.pf_ppo.weight_pow");
  if (read.get_float("actor_rollout_ref.actor.positive_nll_coef") != 0.0)
    options.positive_score = read.get_float("actor_rollout_ref.actor.positive_nll_score");
  if (!read.status().ok()) return read.status();
  if (!options.filter_groups.enabled && options.gen_batch_prompts != options.batch_prompts) {
    return config.out_of_range(
        "data.gen_batch_size",
        "data.train_batch_size, " + std::to_string(options.batch_prompts) +
            ", unless algorithm.filter_groups.enable=true takes more prompts than are trained on");
  }
  if (!pf_ppo) return {};
  const Result<ReweightMethod> method = parse_reweight_method(reweight_method);
  if (!method.ok()) return method.status().with_context("algorithm.pf_ppo.reweight_method");
  options.pf_ppo = PfPpoOptions{.method = *method, .weight_pow = weight_pow};
  return {};
}

// CoDaPO's second phase is of prompts that the first has seen.
Status check_revisits(const Config& config, const TrainerOptions& options) {
  if (options.codapo.top_k > options.batch_prompts) {
    return config.out_of_range("algorithm.codapo_top_k", "at most data.train_batch_size, " +
                                                             std::to_string(options.batch_prompts));
  }
  for (const auto& [key, is_on] :
       {std::pair("algorithm.filter_groups.enable", options.filter_groups.enabled),
        std::pair("sample_store.enable", options.sample_store.enabled),
        std::pair("actor_rollout_ref.hybrid_engine=false", options.rollout_workers.has_value()),
        std::pair("trainer.v1.trainer_mode", options.partial_rollouts.has_value())}) {
    if (is_on)
      return runtime::unimplemented(
          "algorithm.adv_estimator=" + options.estimator->name() + " with " + key +
          ": every other step is of the prompts of the step before; leave " + key + " out");
  }
  return {};
}

// Steps between two of something; below 1, which false stands for: never.
std::int64_t interval(const Config& config, const char* key) {
  const nlohmann::ordered_json* value = config.find(key);
  return value != nullptr && value->is_number() ? value->get<std::int64_t>() : -1;
}

}  // namespace

std::vector<std::string> TrainerOptions::uneven_batches(std::int64_t workers) const {
  std::vector<std::string> found;
  if (validate_only) return found;
  const std::string batch = "data.train_batch_size=" + std::to_string(batch_prompts);
  if (batch_prompts < workers) {
    found.push_back(batch + " is less than the " + std::to_string(workers) +
                    " workers (trainer.nnodes x trainer.n_gpus_per_node), some of which would have "
                    "no prompts: raise it, or take fewer workers");
  }
  if (batch_prompts % mini_batch_prompts != 0) {
    found.push_back(batch + " is not a multiple of actor_rollout_ref.actor.ppo_mini_batch_size=" +
                    std::to_string(mini_batch_prompts) +
                    ", so that the last optimizer step of each step would see fewer prompts: set "
                    "ppo_mini_batch_size to a divisor");
  }
  return found;
}

namespace {

void read_batches(ConfigReader& read, TrainerOptions& options) {
  options.batch_prompts = read.get_int("data.train_batch_size");
  options.mini_batch_prompts =
      std::min(read.get_int("actor_rollout_ref.actor.ppo_mini_batch_size"), options.batch_prompts);
  options.samples_per_prompt = read.get_int("actor_rollout_ref.rollout.n");
  options.prompt_tokens_max = read.get_int("data.max_prompt_length");
  options.response_tokens_max = read.get_int("data.max_response_length");
  options.shared_critic = read.find_bool("actor_rollout_ref.model.custom_forward").value_or(false);
  options.critic_warmup = read.get_int("trainer.critic_warmup");
  options.critic_model = read.find_string("critic.model.path").value_or("");
  options.kl_loss = read.get_bool("actor_rollout_ref.actor.use_kl_loss");
  options.distills = read.get_bool("distillation.enabled");
  options.balances = read.get_bool("trainer.balance_batch");
  options.gradient_leaves = read.find_int("trainer.gradient_leaves").value_or(0);
}

void read_validation(const Config& config, ConfigReader& read, TrainerOptions& options) {
  options.validation_interval = interval(config, "trainer.test_freq");
  // Its default is true in verl, where no validation data means no validation. Built-in data always
  // have some, and an unasked-for validation may take longer than the training, so that here it
  // must be asked for.
  options.validate_first =
      read.get_bool("trainer.val_before_train") &&
      (options.validation_interval > 0 || config.is_set("trainer.val_before_train"));
  options.validate_only = read.get_bool("trainer.val_only");
  options.validate_first = options.validate_first || options.validate_only;
  options.validation_folder = read.find_string("trainer.validation_data_dir").value_or("");
  options.shown_samples = read.get_int("trainer.log_val_generations");
}

void read_outputs(ConfigReader& read, TrainerOptions& options) {
  options.async_save = read.get_bool("trainer.async_save");
  options.rollout_folder = read.find_string("trainer.rollout_data_dir").value_or("");
  options.checkpoints_kept = read.find_int("trainer.max_actor_ckpt_to_keep").value_or(0);
  options.folder = read.get_string("trainer.default_local_dir");
  options.loggers = read.get_strings("trainer.logger");
  options.tensorboard_folder = read.find_string("trainer.tensorboard_dir").value_or("");
  options.project = read.get_string("trainer.project_name");
  options.experiment = read.get_string("trainer.experiment_name");
  options.log_interval = read.get_int("trainer.log_interval");
}

void read_seeds(ConfigReader& read, TrainerOptions& options) {
  const std::int64_t seed = read.find_int("trainer.seed").value_or(0);
  options.seed = static_cast<std::uint64_t>(seed) * 1'000'003 +
                 static_cast<std::uint64_t>(read.get_int("actor_rollout_ref.rollout.seed"));
  options.shuffle_seed = static_cast<std::uint64_t>(read.find_int("data.seed").value_or(seed));
  options.shuffle = read.get_bool("data.shuffle");
}

Status check_components(const Config& config, const TrainerOptions& options) {
  if (options.gdpo_keys.empty())
    return config.out_of_range("algorithm.gdpo_reward_keys",
                               "a list of numbers that the reward returns with its score, with "
                               "algorithm.adv_estimator=" +
                                   options.estimator->name());
  if (!options.gdpo_weights.empty() && options.gdpo_weights.size() != options.gdpo_keys.size()) {
    return config.out_of_range("algorithm.gdpo_reward_weights",
                               "a list of " + std::to_string(options.gdpo_keys.size()) +
                                   " numbers, one for each of algorithm.gdpo_reward_keys");
  }
  return {};
}

// What estimators other than the plain ones read, and what each asks of the rest.
Status read_estimator(const Config& config, ConfigReader& read, TrainerOptions& options) {
  const std::string estimator = read.get_string("algorithm.adv_estimator");
  if (!read.status().ok()) return read.status();
  const Result<const AdvantageEstimator*> parsed = parse_advantage_estimator(estimator);
  if (!parsed.ok()) return parsed.status().with_context("algorithm.adv_estimator");
  options.estimator = *parsed;
  const EstimatorTraits& traits = options.estimator->traits();
  if (options.samples_per_prompt < traits.group_size_min) {
    return config.out_of_range("actor_rollout_ref.rollout.n",
                               "at least " + std::to_string(traits.group_size_min) +
                                   " with algorithm.adv_estimator=" + estimator +
                                   ", which compares responses to one prompt");
  }
  if (traits.needs_components) {
    if (const Status fits = check_components(config, options); !fits.ok()) return fits;
  }
  if (const Status algorithm = read_algorithm(config, options); !algorithm.ok()) return algorithm;
  read.take(options.sample_store, SampleStoreOptions::from_config(config));
  if (!read.status().ok()) return read.status();
  if (traits.needs_greedy_response && options.reward_scaling.enabled()) {
    return config.out_of_range(options.reward_scaling.baseline ? "algorithm.reward_baseline"
                                                               : "algorithm.normalize_reward",
                               "false with algorithm.adv_estimator=" + estimator +
                                   ", whose baseline is the greedy response");
  }
  return {};
}

Status read_codapo(const Config& config, ConfigReader& read, TrainerOptions& options) {
  options.codapo = {
      .top_k = read.find_int("algorithm.codapo_top_k").value_or(options.codapo.top_k),
      .weight_offset =
          read.find_float("algorithm.codapo_weight_offset").value_or(options.codapo.weight_offset),
      .accuracy_key =
          read.find_string("algorithm.codapo_accuracy_key").value_or(options.codapo.accuracy_key)};
  if (!read.status().ok() || !options.estimator->traits().revisits_prompts) return read.status();
  return check_revisits(config, options);
}

Status check_greedy(const Config& config, const TrainerOptions& options) {
  if (!options.estimator->traits().needs_greedy_response || !options.partial_rollouts) return {};
  return config.out_of_range("algorithm.adv_estimator",
                             "another than " + options.estimator->name() +
                                 " with trainer.v1.trainer_mode=colocate_async: its greedy "
                                 "responses would be of other weights");
}

}  // namespace

Result<TrainerOptions> TrainerOptions::from_config(const Config& config) {
  ConfigReader read(config);
  TrainerOptions options;
  read_batches(read, options);
  read_validation(config, read, options);
  read_outputs(read, options);
  options.gdpo_keys =
      read.find_strings("algorithm.gdpo_reward_keys").value_or(std::vector<std::string>());
  if (const auto* weights = config.find("algorithm.gdpo_reward_weights");
      weights != nullptr && !weights->is_null())
    options.gdpo_weights = read.get_floats("algorithm.gdpo_reward_weights");
  read_seeds(read, options);
  options.warm_start = {.steps = read.get_int("sft.steps"),
                        .batch_rows = read.get_int("sft.train_batch_size"),
                        .learning_rate = read.get_float("sft.lr")};
  if (!read.status().ok()) return read.status();
  if (options.folder.empty())
    return config.out_of_range("trainer.default_local_dir", "a folder for the run");

  if (const Status fits = read_estimator(config, read, options); !fits.ok()) return fits;
  if (const Status goals = read_goals(config, options.save_best, options.early_stop); !goals.ok())
    return goals;
  const std::int64_t policy_workers =
      read.get_int("trainer.nnodes") * read.find_int("trainer.n_gpus_per_node").value_or(1);
  if (const Status fits = check_gradient_leaves(config, options.gradient_leaves, policy_workers);
      !fits.ok())
    return fits;
  read.take(options.rollout_workers, RolloutWorkersOptions::from_config(config, policy_workers));
  read.take(options.partial_rollouts, PartialRolloutOptions::from_config(config));
  if (const Status fits = read_codapo(config, read, options); !fits.ok()) return fits;
  if (const Status fits = check_greedy(config, options); !fits.ok()) return fits;
  read.take(options.save, SaveTimes::from_config(config));
  read.take(options.alarms, AlarmOptions::from_config(config));
  read.take(options.warm_start.alarms, LossAlarmOptions::from_config(config));
  options.warm_start.alarms.rate = "sft.lr";
  read.take(options.length, RunLength::from_config(config));
  read.take(options.resume, ResumeOptions::from_config(config));
  if (!read.status().ok()) return read.status();
  return options;
}

}  // namespace rl
