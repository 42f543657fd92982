#include "rl/train/trainer_options.h"

#include <algorithm>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

Status check_at_least_one(const Config& config, std::initializer_list<std::pair<const char*, std::int64_t>> values) {
  for (const auto& [key, value] : values) {
    if (value >= 1) continue;
    return runtime::invalid_argument(std::string(key) + ": must be at least 1, got " + std::to_string(value) + " (" + config.origin(key) + ")");
  }
  return {};
}

Result<ResumeMode> parse_resume_mode(const std::string& name) {
  if (name == "auto") return ResumeMode::kAuto;
  if (name == "disable") return ResumeMode::kDisable;
  if (name == "resume_path") return ResumeMode::kPath;
  return runtime::invalid_argument("trainer.resume_mode: use auto, disable or resume_path, not '" + name + "'");
}

Result<AdvantageEstimator> parse_estimator(const std::string& name) {
  if (name == "grpo") return AdvantageEstimator::kGrpo;
  if (name == "gae") return AdvantageEstimator::kGae;
  return runtime::invalid_argument("algorithm.adv_estimator: use grpo or gae, not '" + name + "'");
}

bool contains(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Result<TrainerOptions> TrainerOptions::from_config(const Config& config) {
  ConfigReader read(config);
  TrainerOptions options;
  options.batch_prompts = read.get_int("data.train_batch_size");
  options.mini_batch_prompts = std::min(read.get_int("actor_rollout_ref.actor.ppo_mini_batch_size"), options.batch_prompts);
  options.samples_per_prompt = read.get_int("actor_rollout_ref.rollout.n");
  options.response_tokens_max = read.get_int("data.max_response_length");
  const std::string estimator = read.get_string("algorithm.adv_estimator");
  options.shared_critic = read.find_bool("actor_rollout_ref.model.custom_forward").value_or(false);
  options.critic_warmup = read.get_int("trainer.critic_warmup");
  options.critic_model = read.find_string("critic.model.path").value_or("");
  options.normalize_by_std = read.get_bool("algorithm.norm_adv_by_std_in_grpo");
  options.kl_in_reward = read.get_bool("algorithm.use_kl_in_reward");
  options.kl_in_reward_coefficient = read.get_float("algorithm.kl_ctrl.kl_coef");
  options.kl_loss = read.get_bool("actor_rollout_ref.actor.use_kl_loss");

  options.epochs = read.get_int("trainer.total_epochs");
  options.steps = read.find_int("trainer.total_training_steps");
  options.save_interval = read.get_int("trainer.save_freq");
  options.validation_interval = read.get_int("trainer.test_freq");
  // Its default is true in verl, where no validation data means no validation. Built-in data always have some, and an
  // unasked-for validation may take longer than the training, so that here it must be asked for.
  options.validate_first = read.get_bool("trainer.val_before_train") && (options.validation_interval > 0 || config.is_set("trainer.val_before_train"));
  options.validate_only = read.get_bool("trainer.val_only");
  options.validate_first = options.validate_first || options.validate_only;
  options.rollout_folder = read.find_string("trainer.rollout_data_dir").value_or("");
  options.validation_folder = read.find_string("trainer.validation_data_dir").value_or("");
  options.shown_samples = read.get_int("trainer.log_val_generations");
  options.checkpoints_kept = read.find_int("trainer.max_actor_ckpt_to_keep").value_or(0);

  options.folder = read.get_string("trainer.default_local_dir");
  const std::string resume_mode = read.get_string("trainer.resume_mode");
  options.resume_path = read.find_string("trainer.resume_from_path").value_or("");
  const std::vector<std::string> loggers = read.get_strings("trainer.logger");
  options.log_to_console = contains(loggers, "console");
  options.log_to_file = contains(loggers, "file");
  options.log_interval = read.get_int("trainer.log_interval");

  const std::int64_t seed = read.find_int("trainer.seed").value_or(0);
  options.seed = static_cast<std::uint64_t>(seed) * 1'000'003 + static_cast<std::uint64_t>(read.get_int("actor_rollout_ref.rollout.seed"));
  options.shuffle_seed = static_cast<std::uint64_t>(read.find_int("data.seed").value_or(seed));
  options.shuffle = read.get_bool("data.shuffle");
  options.warm_start = {.steps = read.get_int("sft.steps"),
                        .batch_rows = read.get_int("sft.train_batch_size"),
                        .learning_rate = read.get_float("sft.lr")};
  if (!read.status().ok()) return read.status();

  const Status valid = check_at_least_one(config, {{"data.train_batch_size", options.batch_prompts},
                                                   {"actor_rollout_ref.actor.ppo_mini_batch_size", options.mini_batch_prompts},
                                                   {"actor_rollout_ref.rollout.n", options.samples_per_prompt},
                                                   {"trainer.total_epochs", options.epochs},
                                                   {"trainer.total_training_steps", options.steps.value_or(1)},
                                                   {"sft.train_batch_size", options.warm_start.batch_rows}});
  if (!valid.ok()) return valid;
  const Result<AdvantageEstimator> parsed = parse_estimator(estimator);
  if (!parsed.ok()) return parsed.status();
  options.estimator = *parsed;
  const Result<ResumeMode> mode = parse_resume_mode(resume_mode);
  if (!mode.ok()) return mode.status();
  options.resume = *mode;
  if (options.resume == ResumeMode::kPath && options.resume_path.empty()) {
    return runtime::invalid_argument("trainer.resume_mode=resume_path needs trainer.resume_from_path=.../global_step_N");
  }
  return options;
}

}  // namespace rl
