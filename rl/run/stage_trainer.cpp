#include "rl/run/stage_trainer.h"

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "rl/checkpoint/checkpoint.h"
#include "rl/checkpoint/resume.h"
#include "rl/metrics/metric_log.h"
#include "rl/run/memory_fit.h"
#include "rl/run/stage_memory.h"
#include "rl/weights/atomic_file.h"
#include "rl/worker/compression_keys.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/fsdp_size.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/toy_model.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

}  // namespace

WorkerSpec StageSetup::spec(const std::string& role, const WorkerSlots& slots) const {
  WorkerSpec spec{.config = config.serialize(),
                  .model = model.string(),
                  .model_name = model.string(),
                  .adapter = {},
                  .group = role + "-" + slots.group.hex(),
                  .rank = 0,
                  .size = 1,
                  .threads = 1,
                  .run_folder = fs::absolute(options.folder).string()};
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
                           std::unique_ptr<DataStage> stage, FolderLock lock)
    : runtime_(runtime),
      setup_(std::move(setup)),
      stage_(std::move(stage)),
      folder_lock_(std::move(lock)) {}

Result<std::unique_ptr<StageTrainer>> StageTrainer::create(runtime::Runtime& runtime,
                                                           const Config& config,
                                                           std::unique_ptr<DataStage> stage) {
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
      new StageTrainer(runtime, std::move(setup), std::move(stage), std::move(*lock)));
  const StageOptions& kept = trainer->options();
  const Result<std::optional<fs::path>> checkpoint =
      checkpoint_to_resume(kept.resume, kept.folder, config.command());
  if (!checkpoint.ok()) return checkpoint.status();
  Status status = *checkpoint ? trainer->check_model(**checkpoint) : Status();
  if (status.ok()) status = trainer->make_run(StepProfiler(std::move(*profile)));
  if (status.ok()) status = trainer->start_workers(*slot_options);
  if (status.ok() && *checkpoint) status = trainer->run_->restore(**checkpoint);
  if (status.ok()) status = trainer->open_logs();
  if (!status.ok()) return status;
  const WorkerSlots& slots = trainer->slots_;
  LOG(info, "{} worker(s) on {} node(s), {} thread(s) each; learning rate {}", slots.size(),
      slots.nodes, slots.threads(), schedule_text(trainer->lr_schedule_));
  return trainer;
}

Status StageTrainer::check_model(const fs::path& checkpoint) const {
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(checkpoint, kRunStateFile);
  if (!state.ok()) return state.status();
  if (const Status own =
          check_state_owner(*state, checkpoint / kRunStateFile, setup_.config.command());
      !own.ok())
    return own;
  return check_same_model(*state, checkpoint, setup_.identity, "model.path");
}

// With the data, which say how long the run is.
Status StageTrainer::make_run(StepProfiler profiler) {
  Status status = stage_->open(setup_);
  for (const std::string& warning : status.ok() ? stage_->warnings() : std::vector<std::string>())
    LOG(warn, "{}", warning);
  if (status.ok()) status = options().check_validation(setup_.config, stage_->validates());
  if (!status.ok()) return status;
  const std::int64_t steps_an_epoch = stage_->batches_per_epoch();
  const std::int64_t total_steps = options().length.last(steps_an_epoch);
  const Result<LrScheduleOptions> schedule = lr_schedule_from_config(
      setup_.config, kStageRole, options().length.scheduled(steps_an_epoch));
  if (!schedule.ok()) return schedule.status();
  lr_schedule_ = *schedule;
  if (const auto note = schedule_note(lr_schedule_, total_steps)) LOG(warn, "optim.{}", *note);
  training_ = std::make_unique<DataTraining>(setup_, *stage_, lr_schedule_);
  run_ = std::make_unique<TrainingRun>(
      TrainingRunOptions{.total_steps = total_steps,
                         .save = options().save,
                         .steps_an_epoch = steps_an_epoch,
                         .async_save = options().async_save,
                         .early_stop = options().early_stop,
                         .checkpoints = {.folder = options().folder,
                                         .kept = options().checkpoints_kept,
                                         .best = options().save_best}},
      *training_, journal_, std::move(profiler));
  return {};
}

Status StageTrainer::start_workers(const SlotOptions& slot_options) {
  const auto nodes = runtime_.cluster().nodes();
  if (!nodes.ok()) return nodes.status();
  const std::vector<NodeRoom> rooms = node_rooms(*nodes);
  if (const auto warning = cpu_warning(slot_options, rooms)) LOG(warn, "{}", *warning);
  const FitsNodes fits_nodes = [&](const RoleMemory& role) {
    return check_memory_fits(std::span(&role, 1), slot_options, rooms);
  };
  const ZeroChoice zero = settle_stage_zero(setup_, *stage_, slot_options, fits_nodes);
  if (zero.shards()) LOG(info, "{}", zero.text());
  if (const std::string teams = teams_text(setup_.config, kStageRole, setup_.workers);
      !teams.empty())
    LOG(info, "{}", teams);
  if (const std::string groups = fsdp_size_text(setup_.config, kStageRole, setup_.workers);
      !groups.empty())
    LOG(info, "{}", groups);
  if (const std::string compression = compression_text(setup_.config, setup_.workers);
      !compression.empty())
    LOG(info, "{}", compression);
  if (const std::string frozen =
          frozen_sharding_text(setup_.config, kStageReferenceRole, setup_.workers);
      !frozen.empty() && !stage_->frozen_models().empty())
    LOG(info, "{}", frozen);
  std::optional<std::string> tight;
  const Status fits = judge_stage_fit(setup_, *stage_, fits_nodes, tight);
  if (!fits.ok()) return fits;
  if (tight) LOG(warn, "{}", *tight);
  if (const auto unseen = unseen_rows_note(stage_->row_lengths())) LOG(info, "{}", *unseen);
  SlotOptions reserved = slot_options;
  if (const Result<RoleMemory> role = stage_memory(setup_, *stage_); role.ok())
    reserved.memory = bounded_memory(slot_memory(std::span(&*role, 1), reserved), reserved, rooms);
  const Result<WorkerSlots> reservation = reserve_slots(runtime_, reserved);
  if (!reservation.ok()) return reservation.status();
  const Result<WorkerSlots> slots = reservation->in_teams_of(setup_.config, kStageRole);
  if (!slots.ok()) return slots.status();
  if (const Status started = stage_->start(runtime_, setup_, *slots); !started.ok()) return started;
  slots_ = *slots;
  return {};
}

Status StageTrainer::open_logs() {
  const Status written =
      write_file_atomically(options().folder / "config.yaml", setup_.config.to_yaml());
  if (!written.ok()) return written;
  const ConsoleOptions console = ConsoleOptions::of_stdout(options().log_interval);
  auto log = open_metric_log({.loggers = options().loggers,
                              .folder = options().folder,
                              .last_step = steps_done(),
                              .project = options().project,
                              .experiment = options().experiment,
                              .config = setup_.config.to_json(),
                              .console = console});
  if (!log.ok()) return log.status();
  journal_.open(std::move(*log));
  return {};
}

Status StageTrainer::fit() {
  const Status validated = validate_first();
  return validated.ok() ? run_->fit(std::numeric_limits<std::int64_t>::max()) : validated;
}

// Not where a run continues: what it was before the first step stands in the logs already.
Status StageTrainer::validate_first() {
  if (!options().validate_first || !stage_->validates() || steps_done() > 0) return {};
  Result<Metrics> validation = stage_->validate();
  if (!validation.ok()) return validation.status().with_context("validation before training");
  run_->watch(*validation);
  run_->record(std::move(*validation));
  return {};
}

Result<StageResult> find_stage_result(const fs::path& folder, bool best) {
  std::optional<fs::path> checkpoint;
  if (!best) {
    Result<std::optional<fs::path>> latest = latest_whole_checkpoint(folder);
    if (!latest.ok()) return latest.status();
    checkpoint = *std::move(latest);
  } else if (const auto step = best_checkpoint_step(folder)) {
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
