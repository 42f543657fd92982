// How a Trainer comes to be: data, workers, warm start. The training itself is in trainer.cpp.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <future>
#include <utility>

#include "rl/agent/tool_host.h"
#include "rl/model/model_config.h"
#include "rl/reward/reward_function.h"
#include "rl/train/learner.h"
#include "rl/train/memory_fit.h"
#include "rl/train/reward_model_path.h"
#include "rl/train/run_memory.h"
#include "rl/train/step_metrics.h"
#include "rl/train/teacher_vocabulary.h"
#include "rl/train/toy_model.h"
#include "rl/train/training_feed.h"
#include "rl/trainer.h"
#include "rl/watch/metric_log.h"
#include "rl/weights/atomic_file.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/reward_model.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::split;
using runtime::Status;

constexpr const char* kWarmStartFolder = "warm_start";

// What would fill the nodes is refused before anything of it is there.
Status check_run_memory(runtime::Runtime& runtime, const Config& config,
                        const TrainerOptions& options, const PolicyOptions& policy,
                        const fs::path& model, const Dataset& rows, const SlotOptions& slots) {
  const Result<ModelConfig> policy_model = ModelConfig::load(model);
  if (!policy_model.ok()) return policy_model.status();
  const Result<std::int64_t> prompt = longest_prompt(config, model, rows);
  if (!prompt.ok()) return prompt.status();
  const Result<RunMemory> memory =
      run_memory(config, options, policy, *policy_model, *prompt, slots);
  return memory.ok() ? check_room(runtime, memory->roles, slots) : memory.status();
}

}  // namespace

Trainer::Trainer(const Config& config) : Trainer(training_runtime(), config) {}

Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::create(runtime::Runtime& runtime, const Config& config) {
  std::unique_ptr<Trainer> trainer(new Trainer(runtime, config));
  const Status started = trainer->start();
  if (!started.ok()) return started;
  return trainer;
}

Status Trainer::start() {
  if (!started_) started_ = start_all();
  return *started_;
}

Status Trainer::start_all() {
  Result<TrainerOptions> options = TrainerOptions::from_config(config_);
  if (!options.ok()) return options.status();
  const Result<SlotOptions> slot_options = SlotOptions::from_config(config_);
  if (!slot_options.ok()) return slot_options.status();
  const Result<PolicyOptions> policy_options =
      PolicyOptions::from_config(config_, slot_options->device);  // workers read it again
  if (!policy_options.ok()) return policy_options.status();
  passes_ = {{"actor", policy_options->epochs}, {"critic", policy_options->epochs}};
  if (options->uses_critic()) {
    const Result<CriticOptions> critic_options = CriticOptions::from_config(config_);
    if (!critic_options.ok()) return critic_options.status();
    passes_["critic"] = critic_options->epochs;
  }
  if (const std::vector<std::string> uneven =
          options->uneven_batches(slot_options->nodes * slot_options->per_node);
      !uneven.empty())
    return runtime::invalid_argument(uneven.front());
  std::error_code error;
  options->folder = fs::absolute(options->folder, error);
  if (error) return runtime::errno_status(error.value(), "trainer.default_local_dir");
  options_ = *options;
  Result<ProfileOptions> profile = ProfileOptions::from_config(config_, options_.folder);
  if (!profile.ok()) return profile.status();
  profiler_ = StepProfiler(std::move(*profile));
  state_.kl_coefficient = options_.kl_control.coefficient;
  state_.early_stop = EarlyStop(options_.early_stop);
  alarms_ = Alarms(options_.alarms);
  saver_ = CheckpointSaver(
      {.folder = options_.folder, .kept = options_.checkpoints_kept, .best = options_.save_best});
  sample_store_ = SampleStore(options_.sample_store);
  Result<FolderLock> lock = FolderLock::acquire(options_.folder);
  if (!lock.ok()) return lock.status();
  folder_lock_ = std::move(*lock);

  Result<fs::path> model = resolve_model(config_, "actor_rollout_ref.model.path", options_.seed);
  if (!model.ok()) return model.status();
  model_ = std::move(*model);
  Result<ModelIdentity> identity =
      identify_model(config_.get_string("actor_rollout_ref.model.path").value_or(""), model_);
  if (!identity.ok()) return identity.status();
  identity_ = std::move(*identity);
  identity_.adapter = policy_options->adapter.has_value();
  critic_model_ = model_;
  if (options_.uses_critic() && !options_.critic_model.empty()) {
    Result<fs::path> critic_model = resolve_model(config_, "critic.model.path", options_.seed);
    if (!critic_model.ok()) return critic_model.status();
    if (const Status reads = check_reads_vocabulary(model_, *critic_model, "critic"); !reads.ok())
      return reads.with_context("critic.model.path");
    critic_model_ = std::move(*critic_model);
  }
  if (policy_options->adapter) {
    const fs::path& folder = policy_options->adapter->folder;
    adapter_ = folder.empty() ? folder : fs::absolute(folder);
  }
  if (options_.distills) {
    if (const Status found = find_teachers(*policy_options); !found.ok()) return found;
  }
  Result<Config> found = with_reward_models_found(config_);
  if (!found.ok()) return found.status();
  reward_config_ = std::move(*found);
  const Result<std::optional<fs::path>> checkpoint =
      checkpoint_to_resume(options_.resume, options_.folder, config_.command());
  if (!checkpoint.ok()) return checkpoint.status();
  if (*checkpoint) {
    if (const Status same = check_model(**checkpoint); !same.ok()) return same;
  }
  Status status = open_data(slot_options->nodes * slot_options->per_node);
  if (status.ok()) status = check_rewards();
  if (!status.ok()) return status;

  policy_slots_ = *slot_options;
  policy_slots_.models = models_of_slot();
  SlotOptions policy_slots = policy_slots_;
  if (options_.rollout_workers) {
    policy_slots.beside_nodes = options_.rollout_workers->nodes;
    policy_slots.beside_per_node = options_.rollout_workers->per_node;
  }
  TrainerOptions sized = options_;
  sized.critic_model = critic_model_;
  status = check_run_memory(runtime_, reward_config_, sized, *policy_options, model_,
                            feed_->dataset(), policy_slots);
  if (!status.ok()) return status;
  const Result<WorkerSlots> slots = reserve_slots(runtime_, policy_slots);
  if (!slots.ok()) return slots.status();
  slots_ = *slots;
  std::future<Status> reward =  // where no thread can be made: after the others
      std::async(std::launch::async | std::launch::deferred, [this] { return start_reward(); });
  status = start_policy(*slots);
  if (status.ok() && options_.rollout_workers) status = start_rollouts();
  if (status.ok() && options_.uses_critic()) status = start_critic();
  if (status.ok() && options_.distills) status = start_teachers();
  const Status reward_status = reward.get();
  if (status.ok()) status = reward_status;
  if (status.ok() && *checkpoint) status = restore(**checkpoint);
  if (status.ok()) status = open_logs();
  return status;
}

// The policy's, and those of the roles beside it; see start_*().
std::int64_t Trainer::models_of_slot() const {
  return 1 + (options_.uses_critic() ? 1 : 0) + (options_.uses_reference() ? 1 : 0) +
         static_cast<std::int64_t>(teachers_.size()) +
         (reward_models(reward_config_).empty() ? 0 : 1);
}

Status Trainer::open_data(std::int64_t workers) {
  const Result<std::optional<DatasetOptions>> train = dataset_options(config_, Split::kTrain);
  if (!train.ok()) return train.status();
  Result<PromptFeedOptions> chosen = training_feed_options(config_, options_, model_, workers);
  if (!chosen.ok()) return chosen.status();
  PromptFeedOptions& feed_options = *chosen;
  Result<std::unique_ptr<PromptFeed>> feed = PromptFeed::create(config_, **train, feed_options);
  if (!feed.ok()) return feed.status();
  feed_ = std::move(*feed);
  if (feed_->rows_dropped() > 0)
    LOG(info, "left out {} prompts longer than data.max_prompt_length", feed_->rows_dropped());
  for (const std::string& warning : data_warnings(config_, *feed_)) LOG(warn, "{}", warning);
  const std::int64_t steps_a_batch = options_.estimator == AdvantageEstimator::kCodapo ? 2 : 1;
  const std::int64_t steps_an_epoch = feed_->batches_per_epoch() * steps_a_batch,
                     scheduled = options_.length.scheduled(steps_an_epoch);
  total_steps_ = options_.length.last(steps_an_epoch);
  if (profiler_.first_wanted() > total_steps_)
    LOG(warn,
        "global_profiler.steps: the run has {} steps, and none of those that are to be profiled",
        total_steps_);
  Result<LrScheduleOptions> schedule = lr_schedule_from_config(config_, kActorRole, scheduled);
  if (!schedule.ok()) return schedule.status();
  lr_schedule_ = *schedule;
  if (const auto note = schedule_note(lr_schedule_, total_steps_))
    LOG(warn, "actor_rollout_ref.actor.optim.{}", *note);
  if (options_.uses_critic()) {
    schedule = lr_schedule_from_config(config_, kCriticRole, scheduled);
    if (!schedule.ok()) return schedule.status();
    critic_lr_schedule_ = *schedule;
    if (const auto note = schedule_note(critic_lr_schedule_, total_steps_))
      LOG(warn, "critic.optim.{}", *note);
  }

  if (options_.warm_start.steps > 0) {
    const Result<std::optional<DatasetOptions>> demonstrations =
        dataset_options(config_, Split::kDemonstrations);
    if (!demonstrations.ok()) return demonstrations.status();
    PromptFeedOptions warm_options = feed_options;
    warm_options.teachers.clear();
    warm_options.adaptive.reset();
    warm_options.python_sampler = {};
    warm_options.batch_prompts = warm_options.mini_batch_prompts = options_.warm_start.batch_rows;
    warm_options.batch_key = "sft.train_batch_size";
    warm_options.demonstrations = true;
    feed = PromptFeed::create(config_, **demonstrations, warm_options);
    if (!feed.ok()) return feed.status().with_context("warm start");
    demonstration_feed_ = std::move(*feed);
  }

  if (options_.validation_interval < 1 && !options_.validate_first) return {};
  const Result<std::optional<DatasetOptions>> validation =
      dataset_options(config_, Split::kValidation);
  if (!validation.ok()) return validation.status();
  if (!*validation) return {};
  const Result<std::optional<std::int64_t>> batch = config_.find_int("data.val_batch_size");
  if (!batch.ok()) return batch.status();
  Result<Dataset> rows = Dataset::load(**validation);
  if (!rows.ok()) return rows.status();
  const std::int64_t at_a_time = batch->value_or(-1);
  feed_options.batch_prompts = at_a_time < 1 ? rows->size() : std::min(at_a_time, rows->size());
  feed_options.mini_batch_prompts = feed_options.batch_prompts;
  feed_options.shuffle = false;
  feed_options.teachers.clear();
  feed_options.adaptive.reset();
  feed_options.python_sampler = {};
  feed = PromptFeed::create(config_, **validation, feed_options);
  if (!feed.ok()) return feed.status().with_context("validation data");
  validation_feed_ = std::move(*feed);
  return {};
}

// What the reward workers would find wrong with the first answers, as far as it is known without
// loading what scores.
Status Trainer::check_rewards() const {
  const Result<std::unique_ptr<RewardFunction>> reward = RewardFunction::from_config(
      reward_config_, /*workers=*/1, /*start=*/false, reward_model_loader({}));
  if (!reward.ok()) return reward.status();
  std::vector<const Dataset*> read;
  for (const PromptFeed* feed : {feed_.get(), validation_feed_.get()}) {
    if (feed != nullptr) read.push_back(&feed->dataset());
  }
  return check_reward_rows(**reward, read);
}

WorkerSpec Trainer::spec(const std::string& role, const fs::path& model) const {
  return {.config = config_.serialize(),
          .model = model.string(),
          .model_name = model.string(),
          .adapter = {},
          .group = role + "-" + slots_.group.hex(),
          .rank = 0,
          .size = 1,
          .threads = 1};
}

WorkerSpec Trainer::policy_spec() const {
  WorkerSpec policy_spec = spec("policy", model_);
  policy_spec.adapter = adapter_.value_or(fs::path()).string();
  // A hub's snapshot is found again by its name, anywhere.
  const Result<std::string> given = config_.get_string("actor_rollout_ref.model.path");
  std::error_code ignored;
  if (given.ok() && *given != kToyModelName && !fs::exists(*given, ignored))
    policy_spec.model_name = *given;
  return policy_spec;
}

Status Trainer::start_policy(const WorkerSlots& slots) {
  auto policy = WorkerGroup<PolicyActor>::spawn(runtime_, slots, /*reserves=*/true, policy_spec());
  if (!policy.ok()) return policy.status();
  policy_ = std::move(*policy);
  LOG(info, "policy: {} worker(s) on {} node(s), {} thread(s) each; learning rate {}", slots.size(),
      slots.nodes, slots.threads(), schedule_text(lr_schedule_));
  const bool compares = options_.estimator == AdvantageEstimator::kGrpo ||
                        options_.estimator == AdvantageEstimator::kGdpo ||
                        options_.estimator == AdvantageEstimator::kGpg;
  if (compares && options_.samples_per_prompt == 1) {
    LOG(warn,
        "actor_rollout_ref.rollout.n is 1: there is no group to compare a response with, so that "
        "its score is its advantage; set it to 4 or more");
  }
  return {};
}

Status Trainer::start_critic() {
  auto critic = WorkerGroup<CriticActor>::spawn(runtime_, slots_, /*reserves=*/false,
                                                spec("critic", critic_model_));
  if (!critic.ok()) return critic.status();
  critic_ = std::move(*critic);
  return {};
}

Status Trainer::start_reward() {
  WorkerSpec reward_spec = spec("reward", model_);
  reward_spec.config = reward_config_.serialize();
  const WorkerSlots slots =
      reward_models(reward_config_).empty() ? slots_.without_models() : slots_;
  auto reward = WorkerGroup<RewardActor>::spawn(runtime_, slots, /*reserves=*/false, reward_spec);
  if (!reward.ok()) return reward.status();
  reward_ = std::move(*reward);
  const Result<bool> prepares = runtime_.get(reward_.leader().call(&RewardActor::prepares));
  if (!prepares.ok()) return prepares.status();
  // ReMax has another batch scored in between.
  scores_early_ = *prepares && options_.estimator != AdvantageEstimator::kRemax;
  return {};
}

// The reference is the policy as RL found it: the given model, with the given adapter if there is
// one, or what the warm start made of it.
Status Trainer::start_reference() {
  const bool warm = options_.warm_start.steps > 0;
  const fs::path warm_folder = options_.folder / kWarmStartFolder;
  WorkerSpec reference_spec =
      spec("reference", warm && !adapter_ ? warm_folder / kModelFolder : model_);
  if (adapter_) reference_spec.adapter = (warm ? warm_folder / kAdapterFolder : *adapter_).string();
  auto reference =
      WorkerGroup<ReferenceActor>::spawn(runtime_, slots_, /*reserves=*/false, reference_spec);
  if (!reference.ok()) return reference.status();
  reference_ = std::move(*reference);
  return {};
}

Status Trainer::open_logs() {
  const Status written = write_file_atomically(options_.folder / "config.yaml", config_.to_yaml());
  if (!written.ok()) return written;
  // What cannot be written is told before the first step.
  fs::path samples;  // of the rollouts
  for (const auto& [key, folder] :
       {std::pair("trainer.rollout_data_dir", options_.rollout_folder),
        std::pair("trainer.validation_data_dir",
                  validation_feed_ ? options_.validation_folder : fs::path())}) {
    std::error_code error;
    if (!folder.empty()) fs::create_directories(folder, error);
    if (!folder.empty() && !error && ::access(folder.c_str(), W_OK) != 0)
      error.assign(errno, std::generic_category());
    if (error)
      return runtime::errno_status(error.value(),
                                   "writing to " + folder.string() + " (" + key + ")");
    if (folder.empty()) continue;
    if (!samples.empty() && fs::equivalent(folder, samples, error)) {
      return runtime::invalid_argument(
          "trainer.rollout_data_dir and trainer.validation_data_dir are one folder, " +
          folder.string() +
          ", where the samples of a validation would replace those of its step: name two");
    }
    samples = folder;
    if (steps_done_ == 0 && has_dumps(folder))
      LOG(warn, "{} has samples of an earlier run: this one's replace those of the same steps ({})",
          folder.string(), key);
    if (fs::equivalent(folder, options_.folder, error)) continue;  // this run's already
    Result<FolderLock> lock = FolderLock::acquire(folder, key);
    if (!lock.ok()) return lock.status();
    sample_locks_.push_back(std::move(*lock));
  }
  const ConsoleOptions console = ConsoleOptions::of_stdout(options_.log_interval);
  auto log = open_metric_log({.loggers = options_.loggers,
                              .folder = options_.folder,
                              .last_step = steps_done_,
                              .project = options_.project,
                              .experiment = options_.experiment,
                              .config = config_.to_json(),
                              .console = console,
                              .tensorboard_folder = options_.tensorboard_folder});
  if (!log.ok()) return log.status();
  logger_ = std::move(*log);
  return {};
}

Status Trainer::warm_start() {
  const LrScheduleOptions schedule = options_.warm_start.schedule();
  LossAlarms alarms(options_.warm_start.alarms);
  const auto limits = policy_.fetch(&PolicyActor::micro_batch_limits);
  if (!limits.ok()) return limits.status();
  for (std::int64_t step = 0; step < options_.warm_start.steps && alarmed_.ok(); ++step) {
    StepTimer timer;
    const Result<std::vector<DemonstrationBatch>> batches =
        demonstration_feed_->next_demonstrations();
    if (!batches.ok()) return batches.status();
    std::int64_t tokens = 0;
    std::vector<std::vector<std::int64_t>> lengths;
    for (const DemonstrationBatch& batch : *batches) {
      tokens += static_cast<std::int64_t>(batch.responses.values.size());
      lengths.push_back(row_lengths(batch));
    }
    std::vector<SupervisedPlan> plans;
    for (auto& micro_batches : plan_rounds(lengths, *limits))
      plans.push_back({tokens, learning_rate(schedule, step), std::move(micro_batches)});
    const auto reports = policy_.fetch(&PolicyActor::supervise, split(*batches), split(plans));
    if (!reports.ok()) return reports.status();
    timer.lap("sft");
    Metrics metrics = sum_metrics(*reports);
    metrics["timing_s/sft"] = timer.seconds("sft");
    metrics["sft/lr"] = learning_rate(schedule, step);
    for (const std::string& told : alarms.observe(metrics, "sft"))
      alarm("sft step " + std::to_string(step + 1) + ": " + told, alarms.options().action);
    record({step + 1, options_.warm_start.steps, 0, std::move(metrics), "sft"});
  }
  if (!alarmed_.ok()) return std::exchange(alarmed_, {});
  const Status reset = policy_.fetch(&PolicyActor::reset_optimizer);
  if (!reset.ok() || !options_.uses_reference()) return reset;
  const auto saved = runtime_.get(
      policy_.leader().call(&PolicyActor::save, (options_.folder / kWarmStartFolder).string()));
  return saved.status();
}

}  // namespace rl
