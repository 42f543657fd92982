#include "rl/run/rl/rl_run.h"

#include <utility>

#include "rl/model/model_config.h"
#include "rl/run/rl/run_fit.h"
#include "rl/run/rl/run_logs.h"
#include "rl/run/rl/training_feed.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

// What would fill the nodes is refused before anything of it is there. Levels of ZeRO that are auto
// become numbers in the plan.
Result<RunMemory> settle_memory(const RunCluster& cluster, RlPlan& plan, const SlotOptions& slots) {
  const Result<ModelConfig> policy = ModelConfig::load(plan.models.policy);
  if (!policy.ok()) return policy.status();
  const Result<std::int64_t> prompt =
      longest_prompt(plan.models.reward_config, plan.models.policy, plan.feeds.training->dataset());
  if (!prompt.ok()) return prompt.status();
  const auto nodes = cluster.nodes();
  if (!nodes.ok()) return nodes.status();
  const std::vector<NodeRoom> rooms = node_rooms(*nodes);
  if (const auto warning = cpu_warning(slots, rooms)) LOG(warn, "{}", *warning);
  TrainerOptions sized = plan.options;
  sized.critic_model = plan.models.critic;
  RunLengths lengths{.prompt_tokens = *prompt};
  if (plan.checkpoint) sized.warm_start.steps = 0;  // it is behind
  if (plan.feeds.demonstrations)
    lengths.demonstrations = plan.feeds.demonstrations->demonstration_lengths();
  Result<RunFit> fit =
      fit_run(plan.models.reward_config, sized, plan.policy, *policy, lengths, slots, rooms);
  if (!fit.ok()) return fit.status();
  if (!fit->fits.ok()) return fit->fits;
  if (fit->zero.shards()) LOG(info, "{}", fit->zero.text());
  plan.config = fit->zero.settled(plan.config);
  plan.models.reward_config = fit->zero.settled(plan.models.reward_config);
  for (const std::string& line : mesh_lines(plan.models.reward_config, sized, slots))
    LOG(info, "{}", line);
  plan.policy.learner.zero = fit->policy_level;
  return std::move(fit->memory);
}

}  // namespace

Result<std::unique_ptr<RlRun>> RlRun::start(const RunCluster& cluster, RlPlan plan,
                                            RunJournal& journal) {
  std::unique_ptr<RlRun> run(new RlRun(cluster.spawner, std::move(plan), journal));
  Status status = run->start_roles(cluster);
  if (!status.ok()) return status;
  run->calls_ = cluster.calls(run->roles_, run->plan_.options.folder / kWarmStartFolder);
  run->make_parts();
  run->make_stage();
  if (run->plan_.checkpoint) status = run->training_->restore(*run->plan_.checkpoint);
  if (status.ok()) status = run->open_logs();
  if (!status.ok()) return status;
  return run;
}

RlRun::RlRun(RoleSpawner& spawner, RlPlan plan, RunJournal& journal)
    : plan_(std::move(plan)),
      journal_(journal),
      starter_(spawner, plan_.config, plan_.options, plan_.models, plan_.slots) {}

Status RlRun::start_roles(const RunCluster& cluster) {
  const Result<RunMemory> memory = settle_memory(cluster, plan_, starter_.slot_options());
  if (!memory.ok()) return memory.status();
  starter_.set_memory(memory->roles);
  return starter_.start(roles_, schedule_text(plan_.schedule.policy_rate));
}

void RlRun::make_parts() {
  const TrainerOptions& options = plan_.options;
  std::vector<TeacherCalls> teachers;
  for (std::size_t i = 0; i < roles_.teachers.size(); ++i)
    teachers.push_back({roles_.teachers[i].named, calls_.teachers[i].get()});
  CreditParts credit = make_credit(options, {*calls_.generate, *calls_.score, *calls_.estimate},
                                   plan_.feeds.training->rows());
  if (roles_.reward_prepares && !credit.reader->scores_others()) calls_.generate->score_early();
  const std::int64_t critic_warmup = credit.critic_warmup;
  std::unique_ptr<PromptSource> prompts =
      credit.chosen_rows ? std::unique_ptr<PromptSource>(std::make_unique<ChosenPrompts>(
                               *plan_.feeds.training, credit.chosen_rows))
                         : std::make_unique<FeedPrompts>(*plan_.feeds.training);
  parts_.reset(new Parts{.prompts = std::move(prompts),
                         .credit = std::move(credit),
                         .balancer = {*calls_.batches, options.balances, options.gradient_leaves},
                         .references = {options.uses_reference() ? calls_.reference.get() : nullptr,
                                        std::move(teachers)},
                         .source = nullptr,
                         .update = {{.policy_rate = plan_.schedule.policy_rate,
                                     .critic_rate = plan_.schedule.critic_rate,
                                     .critic_warmup = critic_warmup,
                                     .reads_reference = options.kl_loss},
                                    *calls_.update},
                         .skipped = SkippedUpdates(plan_.passes),
                         .rollout_dump = {options.rollout_folder, *calls_.score},
                         .validation_dump = {options.validation_folder, *calls_.score},
                         .checkpoint = nullptr});
  parts_->source = make_source(
      options,
      {.total_steps = plan_.schedule.total_steps,
       .group_size_min = parts_->credit.group_size_min,
       .weights_name = starter_.weights_name()},
      {*parts_->prompts, *calls_.generate, *calls_.partial, *calls_.ahead, *calls_.batches,
       *calls_.score, *parts_->credit.reader, parts_->balancer, parts_->references});
  parts_->checkpoint =
      std::make_unique<RlCheckpoint>(plan_.config, options, plan_.models.identity, *calls_.state,
                                     *plan_.feeds.training, *parts_->source, *parts_->credit.phase);
  if (plan_.feeds.validation == nullptr) return;
  validator_ = std::make_unique<Validator>([&feed = *plan_.feeds.validation] { return feed.all(); },
                                           *calls_.generate, *calls_.score, parts_->validation_dump,
                                           options.shown_samples);
}

void RlRun::make_stage() {
  const TrainerOptions& options = plan_.options;
  PromptFeed& feed = *plan_.feeds.training;
  RlStageParts parts{.source = *parts_->source,
                     .credit = *parts_->credit.phase,
                     .update = parts_->update,
                     .dump = parts_->rollout_dump,
                     .estimates = *calls_.estimate,
                     .skipped = parts_->skipped,
                     .validator = validator_.get(),
                     .state = *parts_->checkpoint,
                     .learn_order = {},
                     .profiled_groups = [this] { return roles_.profiled_groups(); },
                     .begin = [this](std::int64_t done) { return begin_training(done); }};
  if (feed.learns())
    parts.learn_order = [&feed](std::span<const RowOutcome> outcomes) {
      return feed.learn(outcomes);
    };
  stage_ =
      std::make_unique<RlStage>(RlStageOptions{.prompt_tokens_max = options.prompt_tokens_max,
                                               .validation_interval = options.validation_interval,
                                               .alarms = options.alarms},
                                std::move(parts));
  training_ = std::make_unique<TrainingRun>(
      TrainingRunOptions{.total_steps = plan_.schedule.total_steps,
                         .save = options.save,
                         .async_save = options.async_save,
                         .early_stop = options.early_stop,
                         .checkpoints = {.folder = options.folder,
                                         .kept = options.checkpoints_kept,
                                         .best = options.save_best}},
      *stage_, journal_, StepProfiler(plan_.profile));
}

Status RlRun::open_logs() {
  Result<RunLogs> logs = RunLogs::open(plan_.config, plan_.options, training_->steps_done(),
                                       /*validates=*/validator_ != nullptr);
  if (!logs.ok()) return logs.status();
  journal_.open(std::move(logs->logger));
  sample_locks_ = std::move(logs->sample_locks);
  return {};
}

Status RlRun::begin_training(std::int64_t steps_done) {
  const TrainerOptions& options = plan_.options;
  if (steps_done == 0 && options.warm_start.steps > 0) {
    WarmStart warm_start(
        options.warm_start,
        [&feed = *plan_.feeds.demonstrations] { return feed.next_demonstrations(); },
        *calls_.warm_start, /*saves=*/options.uses_reference());
    if (const Status warmed = warm_start.run(journal_); !warmed.ok())
      return warmed.with_context("warm start");
  }
  if (options.uses_reference()) {
    if (const Status started = starter_.start_reference(roles_); !started.ok()) return started;
  }
  // A run that continues has the record of it already.
  if (validator_ == nullptr || !options.validate_first ||
      (steps_done > 0 && !options.validate_only))
    return {};
  Result<Metrics> validation = validator_->validate(steps_done);
  if (!validation.ok()) return validation.status().with_context("validation before training");
  training_->record(std::move(*validation));
  return {};
}

Status RlRun::load_checkpoint(const fs::path& folder) {
  const Status same = check_rl_checkpoint(folder, plan_.config, plan_.models.identity);
  return same.ok() ? training_->restore(folder) : same;
}

Status RlRun::flush_dumps() {
  Status all;
  for (SampleDump* dump : {&parts_->rollout_dump, &parts_->validation_dump}) {
    const Status written = dump->flush();
    if (!written.ok())
      all = all.ok() ? written : Status(all.code(), all.message() + "\n" + written.message());
  }
  return all;
}

}  // namespace rl
