#include "rl/trainer.h"

#include <limits>
#include <utility>

#include "rl/actor/training_actors.h"
#include "rl/run/rl/remote_calls.h"
#include "rl/run/rl/rl_run.h"
#include "runtime/runtime.h"

namespace rl {

using runtime::Result;
using runtime::Status;

struct Trainer::Impl {
  Impl(runtime::Runtime& made_runtime, const Config& made_config)
      : runtime(made_runtime), config(made_config) {}

  // Once; what it returned it returns again.
  Status start() {
    if (!started) started = start_run();
    return *started;
  }

  Status start_run() {
    Result<RlPlan> plan = RlPlan::make(config);
    if (!plan.ok()) return plan.status();
    Result<std::unique_ptr<RlRun>> started_run = RlRun::start(cluster(), std::move(*plan), journal);
    if (started_run.ok()) run = std::move(*started_run);
    return started_run.status();
  }

  RunCluster cluster() {
    return {.spawner = spawner,
            .nodes = [this] { return runtime.cluster().nodes(); },
            .calls =
                [this](const Roles& roles, const std::filesystem::path& warm_start_folder) {
                  return remote_calls(runtime, roles, warm_start_folder);
                }};
  }

  const Validator* validator() const { return run ? run->validator() : nullptr; }

  runtime::Runtime& runtime;
  RuntimeSpawner spawner{runtime};
  Config config;
  TrainerOptions no_options;  // before the start
  std::vector<SampleText> no_samples;
  RunJournal journal;
  std::optional<Status> started;
  std::unique_ptr<RlRun> run;  // null before the start
};

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Trainer::Trainer(const Config& config)
    : Trainer(std::make_unique<Impl>(training_runtime(), config)) {}

Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::create(runtime::Runtime& runtime, const Config& config) {
  std::unique_ptr<Trainer> trainer(new Trainer(std::make_unique<Impl>(runtime, config)));
  const Status started = trainer->impl_->start();
  if (!started.ok()) return started;
  return trainer;
}

Status Trainer::fit() { return fit(std::numeric_limits<std::int64_t>::max()); }

Status Trainer::fit(std::int64_t steps) {
  if (const Status started = impl_->start(); !started.ok()) return started;
  RlRun& run = *impl_->run;
  if (!run.options().validate_only) return run.training().fit(steps);
  return run.validator() != nullptr
             ? run.begin()
             : runtime::not_found(
                   "trainer.val_only=true needs validation data: set data.val_files");
}

Result<Metrics> Trainer::step() {
  if (const Status started = impl_->start(); !started.ok()) return started;
  return impl_->run->training().step();
}

Result<Metrics> Trainer::validate() {
  if (const Status started = impl_->start(); !started.ok()) return started;
  RlRun& run = *impl_->run;
  if (run.validator() == nullptr)
    return runtime::not_found("no validation data: set data.val_files");
  return run.validator()->validate(steps_done());
}

Result<std::filesystem::path> Trainer::save_checkpoint() {
  if (const Status started = impl_->start(); !started.ok()) return started;
  return impl_->run->training().save_checkpoint();
}

Status Trainer::load_checkpoint(const std::filesystem::path& folder) {
  const Status started = impl_->start();
  return started.ok() ? impl_->run->load_checkpoint(folder) : started;
}

Status Trainer::flush_logs() {
  const Status all = impl_->journal.flush();
  const Status dumps = impl_->run ? impl_->run->flush_dumps() : Status();
  if (dumps.ok()) return all;
  return all.ok() ? dumps : Status(all.code(), all.message() + "\n" + dumps.message());
}

void Trainer::on_step(std::function<void(const StepRecord&)> callback) {
  impl_->journal.on_step(std::move(callback));
}

void Trainer::stop() { impl_->journal.stop(); }

const TrainerOptions& Trainer::options() const {
  return impl_->run ? impl_->run->options() : impl_->no_options;
}

const MetricLogger& Trainer::log() const { return impl_->journal.logger(); }

std::int64_t Trainer::steps_done() const {
  return impl_->run ? impl_->run->training().steps_done() : 0;
}

std::int64_t Trainer::total_steps() const {
  return impl_->run ? impl_->run->training().total_steps() : 0;
}

std::optional<std::filesystem::path> Trainer::latest_checkpoint() const {
  return impl_->run ? impl_->run->training().latest_checkpoint() : std::nullopt;
}

const std::vector<std::string>& Trainer::alarms() const { return impl_->journal.alarms(); }

std::optional<std::string> Trainer::stopped_early() const {
  return impl_->run ? impl_->run->training().stopped_early() : std::nullopt;
}

const std::vector<SampleText>& Trainer::first_samples() const {
  return impl_->validator() ? impl_->validator()->first_samples() : impl_->no_samples;
}

const std::vector<SampleText>& Trainer::last_samples() const {
  return impl_->validator() ? impl_->validator()->last_samples() : impl_->no_samples;
}

}  // namespace rl
