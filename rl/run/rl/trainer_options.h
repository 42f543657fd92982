// The controller's options, read from the configuration once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rl/algo/advantage_estimator.h"
#include "rl/algo/kl_controller.h"
#include "rl/algo/resampling.h"
#include "rl/algo/reward_scaling.h"
#include "rl/checkpoint/early_stop.h"
#include "rl/checkpoint/resume.h"
#include "rl/checkpoint/save_times.h"
#include "rl/config/config.h"
#include "rl/optim/lr_schedule.h"
#include "rl/run/alarms.h"
#include "rl/run/loss_alarms.h"
#include "rl/run/rl/partial_rollouts.h"
#include "rl/run/rl/rollout_workers.h"
#include "rl/run/rl/sample_store.h"
#include "rl/run/run_length.h"
#include "runtime/core/result.h"

namespace rl {

/// A supervised warm start before the first RL step, on the demonstrations of the data.
struct WarmStartOptions {
  std::int64_t steps = 0;
  std::int64_t batch_rows = 32;
  double learning_rate = 1e-5;

  LossAlarmOptions alarms = {};

  LrScheduleOptions schedule() const {
    return {.kind = LrScheduleOptions::Kind::kConstant,
            .peak = learning_rate,
            .warmup_steps = steps / 10};
  }
};

/// DAPO's dynamic sampling: prompts whose responses all score the same are generated again.
struct FilterGroupsOptions {
  bool enabled = false;
  std::int64_t rounds_max = 0;  // of generation in one step; 0: any number
  std::string metric =
      "reward";  // acc: what the reward gives under that name, or else its score, and score: its
                 // score, both before a length penalty; others: what is trained on
};

/// PF-PPO: samples are resampled by their scores.
struct PfPpoOptions {
  ReweightMethod method = ReweightMethod::kPow;
  double weight_pow = 2.0;
};

/// CoDaPO: every other step is of the prompts of the step before that have most to teach.
struct CodapoOptions {
  std::int64_t top_k = 4;            // how many of them
  double weight_offset = 0.1;        // what a prompt counts that has nothing to teach
  std::string accuracy_key = "acc";  // what the reward gives besides its score: 1 is right
};

/// Settings of the controller of an RL run. Size: a field a key, or a group of keys.
struct TrainerOptions {
  std::int64_t batch_prompts = 1;  // prompts a step
  std::int64_t gen_batch_prompts =
      1;  // prompts a round of generation: as many, but with filter_groups
  std::int64_t mini_batch_prompts = 1;  // prompts an optimizer step, at most batch_prompts
  std::int64_t samples_per_prompt = 1;
  std::int64_t prompt_tokens_max = 512;
  std::int64_t response_tokens_max = 512;
  const AdvantageEstimator* estimator = &advantage_estimator("grpo");  // never nullptr
  bool shared_critic = false;          // GAE: the critic is a head on the policy, not its own model
  std::int64_t critic_warmup = 0;      // GAE: before this step only the critic learns
  std::string critic_model;            // GAE: a folder or a hub name; empty: the policy's
  std::vector<std::string> gdpo_keys;  // GDPO: what the reward gives that is compared by itself
  std::vector<double> gdpo_weights;    // of each; empty: all 1
  CodapoOptions codapo;
  bool normalize_by_std = true;  // GRPO's advantages; without it Dr.GRPO's
  bool kl_in_reward = false;
  bool kl_loss = false;
  bool distills = false;           // a teacher scores the samples; see DistillationObjective
  KlControllerOptions kl_control;  // of the KL in the reward
  FilterGroupsOptions filter_groups;
  SampleStoreOptions sample_store;
  std::optional<PfPpoOptions> pf_ppo;
  RewardScalingOptions reward_scaling;
  std::optional<PartialRolloutOptions>
      partial_rollouts;  // responses go on from step to step; nothing: each step's are generated to
                         // their ends
  std::optional<RolloutWorkersOptions> rollout_workers;  // that generate a step ahead; nothing: the
                                                         // policy's own do, in turns with training
  bool mask_truncated = false;  // responses that the length limit cut do not count
  std::optional<double>
      positive_score;  // the score from which on a response is right; nothing: not asked for

  RunLength length;
  SaveTimes save;
  SaveBestOptions save_best;
  EarlyStopOptions early_stop;
  AlarmOptions alarms;
  bool balances =
      true;  // samples may move to other workers, where the tokens of all come closer then
  std::int64_t gradient_leaves = 0;  // see GradientRound; 0: one a worker
  bool async_save = true;            // checkpoints are written while training goes on
  std::int64_t validation_interval = -1;
  bool validate_first = false;
  bool validate_only = false;         // and train no step
  std::int64_t shown_samples = 0;     // in the table of samples before and after training
  std::int64_t checkpoints_kept = 0;  // 0: all

  std::filesystem::path folder;  // of checkpoints and logs
  ResumeOptions resume;
  std::filesystem::path
      rollout_folder;  // the samples of each step go there as JSONL; empty: nowhere
  std::filesystem::path validation_folder;  // those of each validation
  std::vector<std::string> loggers = {"console"};
  std::filesystem::path tensorboard_folder;  // empty: as MetricLogOptions says
  std::string project;                       // what loggers call the run
  std::string experiment;
  std::int64_t log_interval = 1;

  std::uint64_t seed = 0;  // of sampling
  std::uint64_t shuffle_seed = 0;
  bool shuffle = true;
  WarmStartOptions warm_start;

  /// What is wrong with the sizes of batches for `workers` workers, and which to change. Nothing
  /// where they fit, or no step is to be trained.
  std::vector<std::string> uneven_batches(std::int64_t workers) const;

  /// Whether a critic with its own model is needed.
  bool uses_critic() const { return estimator->traits().needs_critic && !shared_critic; }

  /// Whether a reference model is needed.
  bool uses_reference() const { return kl_loss || kl_in_reward; }

  /// kInvalidArgument: a value out of range, by key.
  static runtime::Result<TrainerOptions> from_config(const Config& config);
};

}  // namespace rl
