#include "rl/stage/stage_trainer.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "rl/stage/stage_memory.h"
#include "rl/train/changed_keys.h"
#include "rl/train/checkpoint.h"
#include "rl/train/memory_fit.h"
#include "rl/train/step_metrics.h"
#include "rl/train/toy_model.h"
#include "rl/watch/metric_log.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr std::int64_t kStageStateFormat = 1;

}  // namespace

WorkerSpec StageSetup::spec(const std::string& role, const WorkerSlots& slots) const {
  WorkerSpec spec{.config = config.serialize(),
                  .model = model.string(),
                  .model_name = model.string(),
                  .adapter = {},
                  .group = role + "-" + slots.group.hex(),
                  .rank = 0,
                  .size = 1,
                  .threads = 1};
  if (options.adapter && !options.adapter->folder.empty())
    spec.adapter = fs::absolute(options.adapter->folder).string();
  // A hub's snapshot is found again by its name, anywhere.
  const Result<std::string> given = config.get_string("model.path");
  std::error_code ignored;
  if (given.ok() && *given != kToyModelName && !fs::exists(*given, ignored))
    spec.model_name = *given;
  return spec;
}

StageTrainer::StageTrainer(runtime::Runtime& runtime, StageSetup setup,
                           std::unique_ptr<Stage> stage)
    : runtime_(runtime),
      setup_(std::move(setup)),
      stage_(std::move(stage)),
      early_stop_(options().early_stop),
      alarms_(options().alarms),
      saver_({.folder = options().folder,
              .kept = options().checkpoints_kept,
              .best = options().save_best}) {}

Result<std::unique_ptr<StageTrainer>> StageTrainer::create(runtime::Runtime& runtime,
                                                           const Config& config,
                                                           std::unique_ptr<Stage> stage) {
  Result<StageOptions> options = StageOptions::from_config(config);
  if (!options.ok()) return options.status();
  const Result<SlotOptions> slot_options = SlotOptions::from_config(config);
  if (!slot_options.ok()) return slot_options.status();
  std::error_code error;
  options->folder = fs::absolute(options->folder, error);
  if (error) return runtime::errno_status(error.value(), "trainer.default_local_dir");
  Result<ProfileOptions> profile = ProfileOptions::from_config(config, options->folder);
  if (!profile.ok()) return profile.status();
  Result<FolderLock> lock = FolderLock::acquire(options->folder);
  if (!lock.ok()) return lock.status();
  Result<fs::path> model = resolve_model(config, "model.path", options->seed);
  if (!model.ok()) return model.status();

  Result<ModelIdentity> identity =
      identify_model(config.get_string("model.path").value_or(""), *model);
  if (!identity.ok()) return identity.status();
  identity->adapter = options->adapter.has_value();
  StageSetup setup{.config = config,
                   .options = std::move(*options),
                   .model = std::move(*model),
                   .identity = std::move(*identity),
                   .workers = slot_options->nodes * slot_options->per_node};
  std::unique_ptr<StageTrainer> trainer(
      new StageTrainer(runtime, std::move(setup), std::move(stage)));
  trainer->folder_lock_ = std::move(*lock);
  trainer->profiler_ = StepProfiler(std::move(*profile));
  const StageOptions& kept = trainer->setup_.options;
  const Result<std::optional<fs::path>> checkpoint =
      checkpoint_to_resume(kept.resume, kept.folder, config.command());
  if (!checkpoint.ok()) return checkpoint.status();
  Status status = *checkpoint ? trainer->check_model(**checkpoint) : Status();
  if (status.ok()) status = trainer->stage_->open(trainer->setup_);
  if (status.ok()) status = kept.check_validation(config, trainer->stage_->validates());
  if (!status.ok()) return status;
  const std::int64_t steps_an_epoch = trainer->stage_->batches_per_epoch();
  trainer->total_steps_ = kept.length.last(steps_an_epoch);
  const Result<LrScheduleOptions> schedule =
      lr_schedule_from_config(config, kStageRole, kept.length.scheduled(steps_an_epoch));
  if (!schedule.ok()) return schedule.status();
  trainer->lr_schedule_ = *schedule;
  if (const auto note = schedule_note(trainer->lr_schedule_, trainer->total_steps_))
    LOG(warn, "optim.{}", *note);

  std::optional<std::string> tight;
  status = judge_stage_fit(
      trainer->setup_, *trainer->stage_,
      [&](const RoleMemory& role) {
        return check_room(runtime, std::span(&role, 1), *slot_options);
      },
      tight);
  if (!status.ok()) return status;
  if (tight) LOG(warn, "{}", *tight);
  const Result<WorkerSlots> slots = reserve_slots(runtime, *slot_options);
  if (!slots.ok()) return slots.status();
  status = trainer->stage_->start(runtime, *slots);
  if (status.ok() && *checkpoint) status = trainer->load_checkpoint(**checkpoint);
  if (status.ok()) status = trainer->open_logs();
  if (!status.ok()) return status;
  LOG(info, "{} worker(s) on {} node(s), {} thread(s) each; learning rate {}", slots->size(),
      slots->nodes, slots->threads(), schedule_text(trainer->lr_schedule_));
  return trainer;
}

Status StageTrainer::open_logs() {
  const Status written =
      write_file_atomically(options().folder / "config.yaml", setup_.config.to_yaml());
  if (!written.ok()) return written;
  const ConsoleOptions console = ConsoleOptions::of_stdout(options().log_interval);
  auto log = open_metric_log({.loggers = options().loggers,
                              .folder = options().folder,
                              .last_step = steps_done_,
                              .project = options().project,
                              .experiment = options().experiment,
                              .config = setup_.config.to_json(),
                              .console = console});
  if (!log.ok()) return log.status();
  logger_ = std::move(*log);
  return {};
}

// Every `interval` steps, and after the last one.
bool StageTrainer::due(const StageInterval& interval) const {
  const std::int64_t steps = interval.in_steps(stage_->batches_per_epoch());
  return steps_done_ == total_steps_ || (steps > 0 && steps_done_ % steps == 0);
}

Result<Metrics> StageTrainer::step() {
  const std::int64_t number = steps_done_ + 1;
  profiler_.before(number, [this] { return stage_->profiled_groups(); });
  Result<Metrics> metrics = take_step();
  if (metrics.ok()) profiler_.after(number);
  return metrics;
}

Result<Metrics> StageTrainer::take_step() {
  StepTimer timer;
  const double rate = learning_rate(lr_schedule_, steps_done_);
  updating_ = false;
  const Status drawn = stage_->draw();
  if (!drawn.ok()) return drawn.with_context("step " + std::to_string(steps_done_ + 1));
  updating_ = true;
  Result<Metrics> metrics = stage_->step(rate);
  if (!metrics.ok())
    return metrics.status().with_context("step " + std::to_string(steps_done_ + 1));
  timer.lap("step");
  ++steps_done_;
  const auto skipped = metrics->find("train/skipped_updates");
  const bool left_out = skipped != metrics->end() && skipped->second != 0;
  const auto loss = metrics->find("train/loss");
  if (!left_out && loss != metrics->end() && !std::isfinite(loss->second)) {
    return runtime::task_failed(
        "step " + std::to_string(steps_done_) + ": its loss is not finite (" +
        std::to_string(loss->second) +
        "): are all numbers of the data (margins, say) and of the configuration of a usual size?" +
        (saver_.latest() ? " The last checkpoint is from before it" : ""));
  }
  lost_ = lost_weights_.observe(steps_done_, left_out, "model");
  saver_.observe(lost_weights_.losing());
  if (left_out)
    LOG(warn,
        "step {}: its update was left out, since its gradient was not finite: is optim.lr too "
        "high?",
        steps_done_);
  const double seconds = timer.seconds("step");
  const double tokens =
      metrics->contains("train/global_tokens") ? metrics->at("train/global_tokens") : 0.0;
  tokens_done_ += static_cast<std::int64_t>(tokens);
  (*metrics)["train/lr"] = rate;
  (*metrics)["train/total_tokens(B)"] = static_cast<double>(tokens_done_) / 1e9;
  (*metrics)["timing_s/step"] = seconds;
  (*metrics)["perf/throughput"] =
      seconds > 0 ? tokens / seconds / static_cast<double>(setup_.workers) : 0.0;
  (*metrics)["training/global_step"] = static_cast<double>(steps_done_);
  (*metrics)["training/epoch"] = static_cast<double>(stage_->epoch());
  return metrics;
}

Status StageTrainer::fit() {
  Status trained = validate_first();
  if (trained.ok()) trained = train();
  profiler_.finish();
  saver_.end();
  return trained.ok() ? saver_.failure() : trained;
}

void StageTrainer::record(const StepRecord& record) {
  logger_.write(record);
  if (on_step_) on_step_(record);
}

// Not where a run goes on: what it was before the first step stands in the logs already.
Status StageTrainer::validate_first() {
  if (!options().validate_first || !stage_->validates() || steps_done_ > 0) return {};
  Result<Metrics> validation = stage_->validate();
  if (!validation.ok()) return validation.status().with_context("validation before training");
  watch(*validation);
  record({steps_done_, total_steps_, stage_->epoch(), std::move(*validation)});
  return {};
}

void StageTrainer::watch(Metrics& metrics) {
  for (const std::string& what : alarms_.observe(metrics)) {
    const std::string told = "step " + std::to_string(steps_done_) + ": " + what;
    LOG(warn, "{}", told);
    told_.push_back(told);
    if (alarms_.options().action != AlarmAction::kStop || stopping_) continue;
    alarmed_ = runtime::task_failed("stopped by an alarm (trainer.alarms.action=stop): " + told);
    stopping_ = true;
  }
}

Status StageTrainer::train() {
  if (stopped_early()) stopping_ = true;
  while (steps_done_ < total_steps_ && !stopping_) {
    const nlohmann::ordered_json before = state_json();
    Result<Metrics> metrics = step();
    if (!metrics.ok()) {
      if (!updating_) keep(before);
      return metrics.status();
    }
    const bool validates = stage_->validates() && due(options().validation);
    if (validates) {
      StepTimer timer;
      const Result<Metrics> validation = stage_->validate();
      if (!validation.ok()) {
        record({steps_done_, total_steps_, stage_->epoch(), std::move(*metrics)});
        keep(state_json());
        return validation.status().with_context("validation after step " +
                                                std::to_string(steps_done_));
      }
      metrics->insert(validation->begin(), validation->end());
      timer.lap("testing");
      (*metrics)["timing_s/testing"] = timer.seconds("testing");
    }
    watch(*metrics);
    if (const std::optional<std::string> reason = early_stop_.observe(*metrics)) {
      LOG(info, "stopping after step {}: {}", steps_done_, *reason);
      stopping_ = true;
    }
    saver_.check_goal(steps_done_, *metrics, validates);
    const bool best =
        !saver_.losing() && (validates || saves_now()) && saver_.is_best(steps_done_, *metrics);
    saver_.tell(*metrics);
    // Before the checkpoint: a run that is killed in between goes on from an older one, and drops
    // the records behind it. The other way round a record would be missing.
    record({steps_done_, total_steps_, stage_->epoch(), std::move(*metrics)});
    if (!lost_.ok()) return lost_;
    const bool ends = stopping_ || steps_done_ == total_steps_;
    if ((best || saves_now()) && (ends || !saver_.losing())) {
      save_checkpoint(best);
    } else {
      saver_.poll();
    }
  }
  return std::exchange(alarmed_, {});
}

// No step goes on beside the last one, so that it needs no copy.
void StageTrainer::save_checkpoint(bool best) {
  const bool beside = options().async_save && steps_done_ < total_steps_ && !stopping_;
  saver_.save(steps_done_, best, /*wait=*/!beside,
              [this, beside] { return copy_state(beside, state_json()); });
}

bool StageTrainer::saves_now() const {
  return options().save.due(steps_done_, stopping_ || steps_done_ == total_steps_,
                            stage_->batches_per_epoch());
}

// What was trained before something failed, unless it is on the disk.
void StageTrainer::keep(const nlohmann::ordered_json& state) {
  if (options().save.never() || steps_done_ == 0 || saver_.losing()) return;
  saver_.keep(steps_done_, [this, &state] { return copy_state(/*beside=*/false, state); });
}

nlohmann::ordered_json StageTrainer::state_json() const {
  return {{"format", kStageStateFormat},
          {"stage", setup_.config.command()},
          {"step", steps_done_},
          {"epoch", stage_->epoch()},
          {"seed", options().seed},
          {"tokens", tokens_done_},
          {"total_steps", total_steps_},
          {EarlyStop::kStateKey, early_stop_.to_json()},
          {LossAlarms::kStateKey, alarms_.to_json()},
          {"best", saver_.best_state()},
          {ModelIdentity::kStateKey, setup_.identity.to_json()},
          {"position", stage_->position()}};
}

Result<CheckpointSaver::WriteFiles> StageTrainer::copy_state(bool beside,
                                                             nlohmann::ordered_json state) const {
  const Result<WriteState> workers = stage_->state(beside);
  if (!workers.ok()) return workers.status();
  return CheckpointSaver::WriteFiles(
      [&runtime = runtime_, state = std::move(state), yaml = setup_.config.to_yaml(),
       write = *workers](CheckpointWriter& writer) -> Result<std::vector<fs::path>> {
        const Result<std::vector<std::string>> files = runtime.get(write(writer.folder()));
        if (!files.ok()) return files.status();
        Status written = writer.write_json(kRunStateFile, state);
        if (written.ok()) written = write_file_atomically(writer.folder() / kSavedConfigFile, yaml);
        if (!written.ok()) return written;
        std::vector<fs::path> expected{kRunStateFile, kSavedConfigFile};
        expected.insert(expected.end(), files->begin(), files->end());
        return expected;
      });
}

Status StageTrainer::check_model(const fs::path& checkpoint) const {
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(checkpoint, kRunStateFile);
  if (!state.ok()) return state.status();
  if (const Status own =
          check_whose_state(*state, checkpoint / kRunStateFile, setup_.config.command());
      !own.ok())
    return own;
  return check_same_model(*state, checkpoint, setup_.identity, "model.path");
}

Status StageTrainer::load_checkpoint(const fs::path& folder) {
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(folder, kRunStateFile);
  if (!state.ok()) return state.status();
  const auto integer = [&](const char* key) -> std::int64_t {
    const auto found = state->find(key);
    return found != state->end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
  };
  if (const Status own = check_whose_state(*state, folder / kRunStateFile, setup_.config.command());
      !own.ok())
    return own;
  if (integer("format") != kStageStateFormat || integer("step") < 0 || integer("tokens") < 0 ||
      !state->contains("position")) {
    return runtime::invalid_argument((folder / kRunStateFile).string() +
                                     ": not a state that this version wrote");
  }
  tell_changed_keys(folder, setup_.config);
  Status status = stage_->resume(nlohmann::json((*state)["position"]));
  if (status.ok()) status = stage_->load(folder);
  if (!status.ok()) return status.with_context("resuming from " + folder.string());
  steps_done_ = integer("step");
  tokens_done_ = integer("tokens");
  early_stop_.restore(*state);
  alarms_.restore(*state);
  saver_.resume(folder, *state);
  LOG(info, "continuing after step {} from {}", steps_done_, folder.string());
  return {};
}

Result<StageResult> find_stage_result(const fs::path& folder, bool best) {
  std::optional<fs::path> checkpoint;
  if (!best)
    checkpoint = find_latest_checkpoint(folder);
  else if (const auto step = best_checkpoint_step(folder)) {
    checkpoint = checkpoint_path(folder, *step);
    if (const Status whole = verify_checkpoint(*checkpoint); !whole.ok())
      return whole.with_context("the best checkpoint");
  }
  std::error_code ignored;
  if (!checkpoint || !fs::is_directory(*checkpoint, ignored))
    return runtime::not_found(folder.string() + ": no complete checkpoint there");
  StageResult result{.checkpoint = *checkpoint,
                     .model = {},
                     .adapter = {},
                     .step = checkpoint_step(*checkpoint).value_or(0)};
  for (const char* place : {"actor", "."}) {
    const fs::path below = (*checkpoint / place).lexically_normal();
    if (result.model.empty() && fs::exists(below / kModelFolder, ignored))
      result.model = below / kModelFolder;
    if (result.adapter.empty() && fs::exists(below / kAdapterFolder, ignored))
      result.adapter = below / kAdapterFolder;
  }
  return result;
}

}  // namespace rl
