#include "rl/run/training_run.h"

#include <utility>

#include "rl/checkpoint/resume.h"
#include "runtime/core/log.h"

namespace rl {

using runtime::Result;
using runtime::Status;

TrainingRun::TrainingRun(TrainingRunOptions options, Stage& stage, RunJournal& journal,
                         StepProfiler profiler)
    : options_(std::move(options)),
      stage_(stage),
      journal_(journal),
      profiler_(std::move(profiler)),
      early_stop_(options_.early_stop),
      saver_(options_.checkpoints) {}

Status TrainingRun::fit(std::int64_t steps) {
  const std::int64_t total = options_.total_steps;
  const Status trained = train(total - steps_done_ > steps ? steps_done_ + steps : total);
  profiler_.finish();
  saver_.end();
  return trained.ok() ? saver_.failure() : trained;
}

Status TrainingRun::train(std::int64_t last) {
  if (stopped_early()) journal_.stop();
  while (steps_done_ < last && !journal_.stopping()) {
    const nlohmann::ordered_json before = state();
    const std::int64_t number = steps_done_ + 1;
    Result<Metrics> metrics = taken_step();
    if (!metrics.ok()) {
      if (steps_done_ == number) return metrics.status();  // it was taken, and broke the run
      if (stage_.can_repeat_step()) keep(before);
      return metrics.status().with_context("step " + std::to_string(number));
    }
    const Result<bool> validated = validate(*metrics);
    if (!validated.ok()) {
      record(std::move(*metrics));
      keep(state());
      return validated.status().with_context("validation after step " +
                                             std::to_string(steps_done_));
    }
    watch(*metrics);
    if (const std::optional<std::string> reason = early_stop_.observe(*metrics)) {
      LOG(info, "stopping after step {}: {}", steps_done_, *reason);
      journal_.stop();
    }
    saver_.check_goal(steps_done_, *metrics, *validated);
    const bool best =
        !saver_.losing() && (*validated || saves_now()) && saver_.is_best(steps_done_, *metrics);
    saver_.tell(*metrics);
    // Before the checkpoint: a run that is killed in between continues from an older one, and drops
    // the records behind it. The other way round a record would be missing.
    record(std::move(*metrics));
    if (!diverged_.ok()) return diverged_;
    save(best, /*ends=*/journal_.stopping() || steps_done_ == last);
  }
  return journal_.take_alarm();
}

Result<Metrics> TrainingRun::step() {
  Result<Metrics> metrics = taken_step();
  if (metrics.ok() && !diverged_.ok()) return diverged_;
  return metrics;
}

Result<Metrics> TrainingRun::taken_step() {
  if (const Status ready = stage_.begin(); !ready.ok()) return ready;
  const std::int64_t number = steps_done_ + 1;
  profiler_.before(number, [this] { return stage_.profiled_groups(); });
  Result<StageStep> step = stage_.step(number);
  if (!step.ok()) return step.status();
  steps_done_ = number;
  if (!step->broken.ok()) return with_last_checkpoint(step->broken);
  diverged_ = step->diverged;
  saver_.observe(step->diverging);
  profiler_.after(number);
  return std::move(step->metrics);
}

Status TrainingRun::with_last_checkpoint(const Status& broken) const {
  return saver_.latest()
             ? Status(broken.code(), broken.message() + " The last checkpoint is from before it")
             : broken;
}

// Returns whether there was a validation.
Result<bool> TrainingRun::validate(Metrics& metrics) {
  if (!stage_.validates_after(steps_done_, options_.total_steps)) return false;
  const Result<Metrics> validation = stage_.validate_after(steps_done_);
  if (!validation.ok()) return validation.status();
  metrics.insert(validation->begin(), validation->end());
  return true;
}

void TrainingRun::watch(Metrics& metrics) {
  for (const std::string& told : stage_.observe(metrics))
    journal_.alarm("step " + std::to_string(steps_done_) + ": " + told, stage_.alarm_action());
}

void TrainingRun::record(Metrics metrics) {
  journal_.record({steps_done_, options_.total_steps, stage_.epoch(), std::move(metrics)});
}

// No step follows the last one, so that it needs no copy.
void TrainingRun::save(bool best, bool ends) {
  if ((!best && !saves_now()) || (!ends && saver_.losing())) return saver_.poll();
  const bool async = options_.async_save && !ends;
  saver_.save(steps_done_, best, /*wait=*/!async,
              [this, async] { return stage_.copy_state(async, state()); });
}

bool TrainingRun::saves_now() const {
  return options_.save.due(steps_done_, journal_.stopping() || steps_done_ == options_.total_steps,
                           options_.steps_an_epoch);
}

// What was trained before something failed, unless it is on the disk.
void TrainingRun::keep(const nlohmann::ordered_json& state) {
  if (options_.save.never() || steps_done_ == 0 || saver_.losing()) return;
  saver_.keep(steps_done_, [this, &state] { return stage_.copy_state(/*async=*/false, state); });
}

nlohmann::ordered_json TrainingRun::state() const {
  return stage_.state({.step = steps_done_,
                       .total_steps = options_.total_steps,
                       .early_stop = early_stop_.to_json(),
                       .best = saver_.best_state()});
}

Result<std::filesystem::path> TrainingRun::save_checkpoint() {
  return saver_.save_now(steps_done_,
                         [this] { return stage_.copy_state(/*async=*/false, state()); });
}

Status TrainingRun::restore(const std::filesystem::path& folder) {
  saver_.finish();
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(folder, kRunStateFile);
  if (!state.ok()) return state.status();
  const Result<std::int64_t> step = stage_.restore(folder, *state);
  if (!step.ok()) return step.status();
  steps_done_ = *step;
  early_stop_ = EarlyStop(options_.early_stop);
  early_stop_.restore(*state);
  diverged_ = {};
  saver_.resume(folder, *state);
  LOG(info, "continuing after step {} from {}", steps_done_, folder.string());
  return {};
}

}  // namespace rl
