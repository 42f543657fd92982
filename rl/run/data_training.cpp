#include "rl/run/data_training.h"

#include <cmath>
#include <utility>

#include "rl/checkpoint/changed_keys.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/checkpoint/early_stop.h"
#include "rl/checkpoint/resume.h"
#include "rl/metrics/step_metrics.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr std::int64_t kStageStateFormat = 1;

// Fails for a loss that is not finite although its update was not skipped.
Status check_loss(const Metrics& metrics, std::int64_t number) {
  const auto loss = metrics.find("train/loss");
  if (loss == metrics.end() || std::isfinite(loss->second)) return {};
  return runtime::task_failed(
      "step " + std::to_string(number) + ": its loss is not finite (" +
      std::to_string(loss->second) +
      "): check the numbers in the data (margins, for example) and in the configuration");
}

}  // namespace

Result<StageStep> DataTraining::step(std::int64_t number) {
  StepTimer timer;
  const double rate = learning_rate(lr_schedule_, number - 1);
  updating_ = false;
  if (const Status taken = stage_.next_batch(); !taken.ok()) return taken;
  updating_ = true;
  Result<Metrics> metrics = stage_.step(rate);
  if (!metrics.ok()) return metrics.status();
  timer.lap("step");
  const auto skipped = metrics->find("train/skipped_updates");
  const bool left_out = skipped != metrics->end() && skipped->second != 0;
  StageStep step;
  if (!left_out) step.broken = check_loss(*metrics, number);
  if (!step.broken.ok()) return step;
  step.diverged = divergence_.observe(number, !left_out, "model");
  step.diverging = divergence_.diverging();
  if (left_out)
    LOG(warn,
        "step {}: skipped its update, since its gradient was not finite: is optim.lr too "
        "high?",
        number);
  add_run_metrics(number, rate, timer.seconds("step"), *metrics);
  step.metrics = std::move(*metrics);
  return step;
}

void DataTraining::add_run_metrics(std::int64_t number, double rate, double seconds,
                                   Metrics& metrics) {
  const double tokens =
      metrics.contains("train/global_tokens") ? metrics.at("train/global_tokens") : 0.0;
  tokens_done_ += static_cast<std::int64_t>(tokens);
  metrics["train/lr"] = rate;
  metrics["train/total_tokens(B)"] = static_cast<double>(tokens_done_) / 1e9;
  metrics["timing_s/step"] = seconds;
  metrics["perf/throughput"] =
      seconds > 0 ? tokens / seconds / static_cast<double>(setup_.workers) : 0.0;
  metrics["training/global_step"] = static_cast<double>(number);
  metrics["training/epoch"] = static_cast<double>(stage_.epoch());
}

// Every N steps, and after the last one.
bool DataTraining::validates_after(std::int64_t step, std::int64_t total_steps) const {
  const std::int64_t interval = setup_.options.validation.in_steps(stage_.batches_per_epoch());
  return stage_.validates() && (step == total_steps || (interval > 0 && step % interval == 0));
}

Result<Metrics> DataTraining::validate_after(std::int64_t step) {
  StepTimer timer;
  Result<Metrics> validation = stage_.validate();
  if (!validation.ok()) return validation;
  timer.lap("testing");
  (*validation)["timing_s/testing"] = timer.seconds("testing");
  return validation;
}

nlohmann::ordered_json DataTraining::state(const RunProgress& progress) const {
  return {{"format", kStageStateFormat},
          {"stage", setup_.config.command()},
          {"step", progress.step},
          {"epoch", stage_.epoch()},
          {"seed", setup_.options.seed},
          {"tokens", tokens_done_},
          {"total_steps", progress.total_steps},
          {EarlyStop::kStateKey, progress.early_stop},
          {LossAlarms::kStateKey, alarms_.to_json()},
          {"best", progress.best},
          {ModelIdentity::kStateKey, setup_.identity.to_json()},
          {"position", stage_.position()}};
}

Result<CheckpointSaver::WriteFiles> DataTraining::copy_state(bool async,
                                                             nlohmann::ordered_json state) const {
  const Result<WriteState> workers = stage_.state(async);
  if (!workers.ok()) return workers.status();
  return CheckpointSaver::WriteFiles(
      [state = std::move(state), yaml = setup_.config.to_yaml(),
       write = *workers](CheckpointWriter& writer) -> Result<std::vector<fs::path>> {
        const WrittenFiles files = write(writer.folder())();
        if (!files.ok()) return files.status();
        Status written = writer.write_json(kRunStateFile, state);
        if (written.ok()) written = write_file_atomically(writer.folder() / kSavedConfigFile, yaml);
        if (!written.ok()) return written;
        std::vector<fs::path> expected{kRunStateFile, kSavedConfigFile};
        expected.insert(expected.end(), files->begin(), files->end());
        return expected;
      });
}

Result<std::int64_t> DataTraining::restore(const fs::path& folder,
                                           const nlohmann::ordered_json& state) {
  const auto integer = [&](const char* key) -> std::int64_t {
    const auto found = state.find(key);
    return found != state.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
  };
  if (const Status own = check_state_owner(state, folder / kRunStateFile, setup_.config.command());
      !own.ok())
    return own;
  if (integer("format") != kStageStateFormat || integer("step") < 0 || integer("tokens") < 0 ||
      !state.contains("position")) {
    return runtime::invalid_argument((folder / kRunStateFile).string() +
                                     ": not a state that this version wrote");
  }
  tell_changed_keys(folder, setup_.config);
  Status status = stage_.resume(nlohmann::json(state["position"]));
  if (status.ok()) status = stage_.load(folder);
  if (!status.ok()) return status.with_context("resuming from " + folder.string());
  tokens_done_ = integer("tokens");
  alarms_.restore(state);
  return integer("step");
}

}  // namespace rl
