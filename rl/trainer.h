// Trainer: the controller of an RL run. It moves references and per-sample scalars between the
// roles; tokens and log-probs go from actor to actor. The data flow of a step is Trainer::take_step
// in trainer.cpp, on one screen.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/train/begun_rollouts.h"
#include "rl/train/checkpoint_saver.h"
#include "rl/train/folder_lock.h"
#include "rl/train/lost_weights.h"
#include "rl/train/lr_schedule.h"
#include "rl/train/model_identity.h"
#include "rl/train/prompt_feed.h"
#include "rl/train/rollout_batch.h"
#include "rl/train/rollout_dump.h"
#include "rl/train/step_metrics.h"
#include "rl/train/teachers.h"
#include "rl/train/trainer_options.h"
#include "rl/watch/metrics.h"
#include "rl/worker/actors.h"
#include "rl/worker/step_profiler.h"
#include "rl/worker/worker_group.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// Reinforcement learning of a policy from the scores of its responses, by the algorithms that
/// docs/guide/algorithms.md lists: over a policy and a reward group, a reference where the
/// objective needs one, and with PPO a critic, which is a group of its own or a head on the policy.
///
///   rl::Trainer trainer(config);
///   trainer.on_step([](const rl::StepRecord& record) { ... });
///   runtime::Status status = trainer.fit(100);
///
/// A resource; one thread at a time. Borrows the runtime, which must have the classes of
/// register_training_actors().
class Trainer {
 public:
  /// Reads the data, finds the checkpoint to resume from, and starts the workers with it.
  /// Everything that can be found wrong before the first step is found here. Errors name the key,
  /// file or row, and the cure.
  static runtime::Result<std::unique_ptr<Trainer>> create(runtime::Runtime& runtime,
                                                          const Config& config);

  /// As create(), on training_runtime(), with the first call of another method, which returns what
  /// create() would have.
  explicit Trainer(const Config& config);
  ~Trainer();

  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains up to total_steps(), with the warm start, validation and checkpoints that the
  /// configuration asks for; unless trainer.save_freq=0, the last step is saved, and where one
  /// fails before it has updated anything, or its validation does, what was trained before.
  /// Checkpoints are written while the next steps are taken; the last is waited for. One that
  /// cannot be written does not stop the training: fit() goes on and returns that failure at the
  /// end.
  runtime::Status fit();

  /// As fit(), but for at most so many steps; fit() continues.
  runtime::Status fit(std::int64_t steps);

  /// One step; what fit() repeats. Metrics of it, timings included. kTaskFailed: it was the tenth
  /// in a row without a finite gradient.
  runtime::Result<Metrics> step();

  /// Greedy (or as `rollout.val_kwargs` say) answers to all validation rows: val-core/<data
  /// source>/reward/mean@n. Keeps the first samples as texts if a table of them is wanted.
  /// kNotFound: no validation data.
  runtime::Result<Metrics> validate();

  /// Writes a checkpoint of the present step below options().folder, and waits for it. Returns its
  /// folder.
  runtime::Result<std::filesystem::path> save_checkpoint();

  /// Continues from `folder`, a global_step_N. kInvalidArgument: damaged, or of other data or
  /// another model.
  runtime::Status load_checkpoint(const std::filesystem::path& folder);

  /// Writes what a full disk held back of metrics and samples. Errors: why some of it still cannot
  /// be written; it is kept for another try.
  runtime::Status flush_logs();

  /// Called after every step, warm start included.
  void on_step(std::function<void(const StepRecord&)> callback) { on_step_ = std::move(callback); }

  /// For a call-back: no step is to follow the one that was told of. fit() saves it, unless
  /// trainer.save_freq=0, and returns.
  void stop() { stopping_ = true; }

  const TrainerOptions& options() const { return options_; }
  const MetricLogger& log() const { return logger_; }
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t total_steps() const { return total_steps_; }
  std::optional<std::filesystem::path> latest_checkpoint() const { return saver_.latest(); }

  /// What alarms have told in this process, with their steps.
  const std::vector<std::string>& alarms() const { return told_; }

  /// Why `trainer.early_stop` ended the training, if it did, in this process or in the one that
  /// wrote the checkpoint it goes on from.
  std::optional<std::string> stopped_early() const { return state_.early_stop.reason_to_stop(); }

  /// Samples of the first and of the last validation; empty unless `trainer.log_val_generations`
  /// asks for some.
  const std::vector<SampleText>& first_samples() const { return first_samples_; }
  const std::vector<SampleText>& last_samples() const { return last_samples_; }

 private:
  // What a step is made of, by worker: the samples stay where they were drawn until balance()
  // spreads them, the controller has references and numbers.
  struct StepSamples {
    std::vector<PromptShard> shards;  // which prompts of the step each worker answered
    std::vector<runtime::ObjectRef<RolloutBatch>> batches;
    std::vector<RolloutSummary> summaries;
    std::vector<std::vector<RewardTask>> tasks;         // per prompt
    std::vector<std::vector<std::int64_t>> samples_of;  // per prompt: how many samples it has
    std::vector<std::vector<double>> scores;            // per sample
    std::vector<std::vector<double>> baselines;         // per sample, ReMax's; else empty
    std::vector<std::vector<std::vector<double>>>
        components;  // per sample, what the reward gives under component_keys(); else empty
    std::vector<std::vector<std::map<std::string, double>>>
        extras;  // per sample, whatever numbers it gives beside the score; empty unless they are
                 // kept to look at
    std::vector<std::int64_t> drawn_tokens;  // by worker, prompts and responses, as they were drawn
    std::vector<std::int64_t> rows;  // per prompt of the step: of the data set; of the last round
    std::vector<Referenced> references;  // empty where nothing needs them
    std::vector<Referenced> taught;      // the same of a teacher
    std::vector<RewardReport> reports;   // of all rounds
    Metrics draw_metrics;                // of all rounds, workers and calls: what became of tools
    std::int64_t epoch = 0;
    std::int64_t rounds = 0;         // of generation
    std::int64_t prompts_drawn = 0;  // in all rounds
  };

  struct Teacher {
    NamedTeacher named;
    std::filesystem::path model;
    WorkerGroup<ReferenceActor> group;

    // What logs and profiles call it.
    std::string role() const { return named.rows.empty() ? "teacher" : "teacher_" + named.name; }
  };

  // A round of generation.
  struct Drawn {
    StepPrompts prompts;
    std::vector<Generated> generated;  // by worker
    std::int64_t updates_since = 0;    // of the weights, since those that drew
  };

  // A step's samples, which are being drawn while steps before it are trained.
  struct Ahead {
    std::int64_t step = 0;
    std::int64_t weights = 0;  // steps that those which draw had learned from
    nlohmann::json position;   // in the data, before its prompts
    StepPrompts prompts;
    std::vector<runtime::ObjectRef<Generated>> generated;  // by worker
    std::vector<Generated> restored;                       // instead, from a checkpoint
  };

  // Prompts whose responses are on their way while steps are trained.
  struct PartialState {
    std::int64_t steps_begun = 0;  // whose prompts have been begun
    std::int64_t epoch = 0;
    std::vector<std::vector<BegunTask>> tasks;                        // by worker, oldest first
    std::vector<runtime::ObjectRef<std::vector<BegunPrompt>>> begun;  // by worker, the same prompts
  };

  // What workers that draw samples were given last.
  struct PublishedWeights {
    std::uint64_t version = 0;  // 0: nothing yet
    std::int64_t step = 0;      // that they had learned from
  };

  // How much each response, or each of its tokens, is to be made more or less likely.
  struct Credit {
    std::vector<float> advantages;  // per sample; empty where each token has its own
    std::vector<runtime::ObjectRef<TokenEstimates>>
        estimates;  // per worker; empty ones where a sample has one advantage
    AdvantageScaling scaling;
    std::vector<SampleUse> use;                // per worker
    std::vector<std::vector<double>> rewards;  // per sample: scores, scaled and less the KL
    Metrics metrics;
  };

  // What steps leave to the next ones besides weights and the position in the data; saved with
  // checkpoints.
  struct RunState {
    double kl_coefficient = 0.0;
    RewardStatistics rewards;
    EarlyStop early_stop;
    std::vector<std::int64_t>
        focus;  // CoDaPO: rows of the data that the next step is of; empty: it takes the next ones
  };

  Trainer(runtime::Runtime& runtime, const Config& config) : runtime_(runtime), config_(config) {}

  // In order of use.
  runtime::Status start();  // once; what it returned it returns again
  runtime::Status start_all();
  runtime::Status open_data(std::int64_t workers);
  runtime::Status check_rewards() const;
  WorkerSpec spec(const std::string& role, const std::filesystem::path& model) const;
  std::int64_t models_of_slot() const;
  runtime::Status start_policy(const WorkerSlots& slots);
  WorkerSpec policy_spec() const;
  runtime::Status start_rollouts();
  runtime::Status start_critic();
  runtime::Status start_reward();
  runtime::Status start_reference();
  runtime::Status find_teachers(const PolicyOptions& policy);
  runtime::Status start_teachers();
  runtime::Status open_logs();
  runtime::Status check_model(const std::filesystem::path& checkpoint) const;
  runtime::Status restore(const std::filesystem::path& folder);
  runtime::Status begin();
  runtime::Status warm_start();
  runtime::Result<Metrics> profiled_step();
  runtime::Result<Metrics> take_step();
  runtime::Result<StepSamples> draw_samples(StepTimer& timer);
  runtime::Result<StepSamples> draw_informative(StepTimer& timer);
  runtime::Result<StepSamples> draw_round(std::int64_t round, StepTimer& timer);
  runtime::Result<Drawn> draw_now(std::int64_t round);
  runtime::Result<std::vector<Generated>> generate(const StepPrompts& prompts, bool validation);
  runtime::Result<Drawn> draw_ahead(StepTimer& timer);
  runtime::Status begin_ahead(std::int64_t step);
  runtime::Status fill_ahead(std::int64_t first);
  static runtime::Result<std::vector<SavedGroup>> fetch_ahead(runtime::Runtime& runtime,
                                                              const Ahead& ahead);
  static runtime::Result<std::string> encode_ahead(runtime::Runtime& runtime,
                                                   const std::deque<Ahead>& ahead);
  runtime::Status restore_ahead(const std::filesystem::path& file, std::int64_t step);
  runtime::Result<Drawn> draw_partially(Metrics& metrics);
  runtime::Result<std::vector<std::vector<PromptBatch>>> begin_prompts(std::int64_t step);
  static runtime::Result<std::string> encode_partial(runtime::Runtime& runtime,
                                                     const PartialState& partial);
  runtime::Status restore_partial(const std::filesystem::path& file, std::int64_t epoch);
  runtime::Status restore_step(std::span<const SavedGroup> groups, std::int64_t step,
                               const std::filesystem::path& file);
  runtime::Result<PromptPlaces> balance(StepSamples& samples);
  void move_reports(std::vector<RewardReport>& reports, const PromptPlaces& places) const;
  runtime::Status score(StepSamples& samples, const std::vector<RewardReport>& greedy,
                        StepTimer& timer);
  runtime::Status refer(StepSamples& samples, StepTimer& timer);
  runtime::Status teach(StepSamples& samples, StepTimer& timer);
  static std::vector<std::vector<std::uint8_t>> of_other_teachers(const StepSamples& samples,
                                                                  const Teacher& teacher);
  bool refers_later() const {
    return options_.filter_groups.enabled || options_.sample_store.enabled;
  }
  runtime::Status mix_replayed(StepSamples& samples);
  runtime::Status append_replayed(StepSamples& samples,
                                  std::vector<std::vector<StoredGroup>> groups);
  runtime::Status restore_samples(const std::filesystem::path& folder);
  std::vector<std::string> component_keys() const;
  runtime::Status take_components(StepSamples& samples) const;
  runtime::Result<StepPrompts> next_prompts(std::int64_t step, std::int64_t round);
  runtime::Status leave_out_unscored(StepSamples& samples);
  runtime::Result<Credit> assign_credit(const StepSamples& samples, StepTimer& timer);
  std::vector<float> credit_by_value(const StepSamples& samples,
                                     const std::vector<std::int64_t>& groups, Credit& credit);
  void scale_rewards(Credit& credit);
  runtime::Status penalize(const StepSamples& samples, Credit& credit);
  std::vector<SampleUse> use_of(const StepSamples& samples) const;
  void keep_samples(RolloutDumper& dumper, const RolloutDump& dump,
                    const std::vector<runtime::ObjectRef<RolloutBatch>>& batches,
                    const std::vector<std::vector<RewardTask>>& tasks,
                    const std::vector<std::vector<double>>& scores,
                    const std::vector<std::vector<std::map<std::string, double>>>& extras,
                    const std::vector<std::vector<float>>& advantages);
  runtime::Result<std::vector<std::vector<float>>> advantages_of_samples(const StepSamples& samples,
                                                                         const Credit& credit);
  void record(const StepRecord& record);
  runtime::Status train(std::int64_t last);
  runtime::Status tell_order(const StepSamples& samples);
  void watch(Metrics& metrics);
  void alarm(const std::string& told, AlarmAction action);
  void watch_skipped(const Metrics& metrics, std::int64_t mini_batches);
  runtime::Result<CheckpointSaver::WriteFiles> copy_state(bool beside,
                                                          nlohmann::ordered_json state) const;
  nlohmann::ordered_json state_json() const;
  void keep(const nlohmann::ordered_json& state);
  void keep_before_step(const nlohmann::ordered_json& state);
  bool saves_now() const;
  bool due(std::int64_t interval) const;

  runtime::Runtime& runtime_;
  Config config_;
  Config reward_config_;  // the same, with reward models as paths
  TrainerOptions options_;
  std::optional<runtime::Status> started_;
  FolderLock folder_lock_;
  std::vector<FolderLock> sample_locks_;  // of folders that samples go to
  LrScheduleOptions lr_schedule_;
  LrScheduleOptions critic_lr_schedule_;
  std::filesystem::path critic_model_;
  std::optional<std::filesystem::path>
      adapter_;  // the LoRA adapter that training begins with, empty for a new one; nothing: all
                 // weights are trained
  std::filesystem::path model_;  // what training starts from, and what the reference stays at
  ModelIdentity identity_;       // of it
  SlotOptions policy_slots_;
  WorkerSlots slots_;
  WorkerGroup<PolicyActor> policy_;
  WorkerGroup<PolicyActor> rollouts_;      // empty unless samples are drawn by workers of their own
  WorkerGroup<CriticActor> critic_;        // empty unless the critic has a model of its own
  WorkerGroup<ReferenceActor> reference_;  // empty unless the objective needs one
  std::vector<Teacher> teachers_;          // empty unless the policy is distilled
  WorkerGroup<RewardActor> reward_;
  bool scores_early_ = false;  // the reward begins while samples are drawn
  std::unique_ptr<PromptFeed> feed_;
  std::unique_ptr<PromptFeed> demonstration_feed_;  // null without a warm start
  std::unique_ptr<PromptFeed> validation_feed_;     // null without validation data
  MetricLogger logger_;
  RolloutDumper rollout_dumper_;
  RolloutDumper validation_dumper_;
  std::function<void(const StepRecord&)> on_step_;
  StepProfiler profiler_;
  bool begun_ = false;
  std::vector<runtime::ObjectRef<std::vector<float>>>
      no_logprobs_;  // per worker, an empty list: what methods get that need none
  std::vector<runtime::ObjectRef<TokenEstimates>> no_estimates_;
  runtime::ObjectRef<RolloutBatch> no_samples_;
  std::deque<Ahead> ahead_;  // in the order of their steps
  PublishedWeights published_;
  PartialState partial_;
  RunState state_;
  SampleStore sample_store_;
  Alarms alarms_{AlarmOptions{}};
  std::vector<std::string> told_;  // by alarms
  runtime::Status lost_;           // why no checkpoint of these weights is worth having
  runtime::Status alarmed_;        // why an alarm ended the training
  bool stopping_ = false;          // no step is to follow
  bool updating_ = false;          // the weights may be neither of the step before nor of this one
  std::map<std::string, std::int64_t> passes_;       // by role: over a step's mini-batches
  std::map<std::string, LostWeights> lost_weights_;  // by role
  std::int64_t steps_done_ = 0;
  std::int64_t total_steps_ = 0;
  std::int64_t epoch_ = 0;
  std::vector<SampleText> first_samples_;
  std::vector<SampleText> last_samples_;
  CheckpointSaver saver_{CheckpointSaverOptions{}};  // last, since its thread uses the rest
};

}  // namespace rl
