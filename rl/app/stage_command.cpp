#include "rl/app/stage_command.h"

#include <iostream>
#include <optional>
#include <utility>

#include "rl/app/config_command.h"
#include "rl/app/interrupt_watch.h"
#include "rl/app/kept.h"
#include "rl/run/stage_trainer.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Status;

Status train_stage(runtime::Runtime& runtime, const Config& config,
                   std::unique_ptr<DataStage> stage, bool generates) {
  auto trainer = StageTrainer::create(runtime, config, std::move(stage));
  if (!trainer.ok()) return trainer.status();
  if ((*trainer)->steps_done() >= (*trainer)->total_steps()) {
    LOG(info, "nothing to do: {} of {} steps are done (trainer.resume_mode=disable starts again)",
        (*trainer)->steps_done(), (*trainer)->total_steps());
    return {};
  }
  if (const auto reason = (*trainer)->stopped_early(); reason) {
    LOG(info,
        "nothing to do: stopped early after step {} of {}: {} (with other keys of "
        "trainer.early_stop it continues; trainer.resume_mode=disable starts again)",
        (*trainer)->steps_done(), (*trainer)->total_steps(), *reason);
    return {};
  }
  const StageOptions& options = (*trainer)->options();
  print_kept(options.save, options.save_best, options.folder, (*trainer)->log());
  std::optional<InterruptWatch> interrupts;
  (*trainer)->on_step([&](const StepRecord& record) {
    if (record.step == 0)
      return;  // before the first step there is nothing to save, and a signal ends the run at once
    if (!interrupts) interrupts.emplace(!options.save.never());
    if (interrupts->interrupted()) (*trainer)->stop();
  });
  const Status status = (*trainer)->fit();
  const bool cut = status.ok() && interrupts && interrupts->interrupted() &&
                   (*trainer)->steps_done() < (*trainer)->total_steps();
  std::cout << "\n";
  for (const std::string& alarm : (*trainer)->alarms())
    std::cout << "alarm:      " << alarm << "\n";
  print_metric_places(std::cout, (*trainer)->log());
  std::cout << "config:     " << ((*trainer)->options().folder / "config.yaml").string() << "\n";
  const auto result = find_stage_result((*trainer)->options().folder);
  print_checkpoint(std::cout, result.ok() ? std::optional(result->checkpoint) : std::nullopt,
                   (*trainer)->steps_done(), options.save);
  if (result.ok() && !result->model.empty() && generates)
    std::cout << "try it:     starling generate --model " << result->model.string()
              << " --chat TEXT\n";
  if (result.ok() && result->model.empty())
    std::cout << "try it:     starling export --checkpoint " << result->checkpoint.string()
              << " --out FOLDER\n";
  std::cout.flush();
  if (cut)
    return interrupts->cut((*trainer)->steps_done(), (*trainer)->total_steps(),
                           (*trainer)->options().resume.mode);
  return status.ok() ? (*trainer)->flush_logs() : status;
}

}  // namespace

int run_stage_command(runtime::Runtime& runtime, const StageCommand& command, int argc,
                      char** argv) {
  const ConfigCommand with_stage{
      .keys = command.keys,
      .description = command.description,
      .key_names = "the names of verl's SFT trainer",
      .example = command.example,
      .dry_run =
          [&](const Config& config, std::ostream& out, std::span<const NodeRoom> nodes) {
            return stage_dry_run(config, *command.make(), out, nodes);
          },
      .run =
          [&](runtime::Runtime& started, const Config& config) {
            return train_stage(started, config, command.make(), command.generates);
          }};
  return run_config_command(runtime, with_stage, argc, argv);
}

}  // namespace rl
