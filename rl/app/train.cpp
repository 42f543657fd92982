#include "rl/app/train.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "rl/app/config_command.h"
#include "rl/app/dry_run.h"
#include "rl/app/interrupt_watch.h"
#include "rl/app/kept.h"
#include "rl/app/sample_table.h"
#include "rl/batch/rollout_batch.h"
#include "rl/optim/learner_snapshot.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/trainer.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Status;

// The score of every step, for the curve that ends the run.
class ScoreCurve {
 public:
  void add(const StepRecord& record) {
    const auto score = record.metrics.find("critic/score/mean");
    if (record.phase.empty() && score != record.metrics.end()) scores_.push_back(score->second);
  }

  // "0.31 ▁▂▅▇█ 0.93", at most 60 columns of bars, each the mean of its steps.
  std::string text() const {
    if (scores_.empty()) return "";
    static const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const std::size_t columns = std::min<std::size_t>(60, scores_.size());
    const double low = *std::min_element(scores_.begin(), scores_.end());
    const double high = *std::max_element(scores_.begin(), scores_.end());
    std::string bars;
    for (std::size_t column = 0; column < columns; ++column) {
      const double mean =
          mean_of(column * scores_.size() / columns, (column + 1) * scores_.size() / columns);
      const double height = high > low ? (mean - low) / (high - low) : 0.0;
      bars += kBars[std::min<std::size_t>(7, static_cast<std::size_t>(height * 8.0))];
    }
    return number(scores_.front()) + " " + bars + " " + number(scores_.back());
  }

 private:
  double mean_of(std::size_t begin, std::size_t end) const {
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) sum += scores_[i];
    return sum / static_cast<double>(end - begin);
  }
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", value);
    return text;
  }

  std::vector<double> scores_;
};

void print_summary(const Trainer& trainer, const ScoreCurve& curve, bool finished) {
  if (!curve.text().empty()) std::cout << "\nmean score by step: " << curve.text() << "\n";
  if (finished && !trainer.first_samples().empty()) {
    std::cout << "\nthe same prompts before and after training, with the score of each answer:\n"
              << sample_table(trainer.first_samples(), trainer.last_samples());
  }
  const auto& folder = trainer.options().folder;
  std::cout << "\n";
  for (const std::string& alarm : trainer.alarms()) std::cout << "alarm:      " << alarm << "\n";
  print_metric_places(std::cout, trainer.log());
  std::cout << "config:     " << (folder / "config.yaml").string() << "\n";
  if (!trainer.options().validate_only)
    print_checkpoint(std::cout, trainer.latest_checkpoint(), trainer.steps_done(),
                     trainer.options().save);
  if (const auto checkpoint = trainer.latest_checkpoint()) {
    std::error_code error;
    const std::filesystem::path model = *checkpoint / "actor" / kModelFolder;
    if (std::filesystem::is_directory(model, error)) {
      std::cout << "try it:     starling generate --model " << model.string() << " --chat TEXT\n";
    } else {  // an adapter, which is merged first
      std::cout << "try it:     starling export --checkpoint " << checkpoint->string()
                << " --out FOLDER\n";
    }
  }
  std::cout.flush();
}

Status train_rl(runtime::Runtime& runtime, const Config& config) {
  auto trainer = Trainer::create(runtime, config);
  if (!trainer.ok()) return trainer.status();
  if (!(*trainer)->options().validate_only &&
      (*trainer)->steps_done() >= (*trainer)->total_steps()) {
    LOG(info, "nothing to do: {} of {} steps are done (trainer.resume_mode=disable starts again)",
        (*trainer)->steps_done(), (*trainer)->total_steps());
    return {};
  }
  if (const auto reason = (*trainer)->stopped_early();
      !(*trainer)->options().validate_only && reason) {
    LOG(info,
        "nothing to do: stopped early after step {} of {}: {} (with other keys of "
        "trainer.early_stop it continues; trainer.resume_mode=disable starts again)",
        (*trainer)->steps_done(), (*trainer)->total_steps(), *reason);
    return {};
  }
  ScoreCurve curve;
  std::optional<InterruptWatch> interrupts;
  const TrainerOptions& options = (*trainer)->options();
  const bool saves = !options.save.never();
  if (!options.validate_only)
    print_kept(options.save, options.save_best, options.folder, (*trainer)->log());
  (*trainer)->on_step([&](const StepRecord& record) {
    curve.add(record);
    if (!record.phase.empty()) return;
    // Before the first step there is nothing to save, and a signal ends the run at once.
    if (!interrupts) interrupts.emplace(saves);
    if (interrupts->interrupted()) (*trainer)->stop();
  });
  const Status status = (*trainer)->fit();
  const bool cut = status.ok() && interrupts && interrupts->interrupted() &&
                   (*trainer)->steps_done() < (*trainer)->total_steps();
  print_summary(**trainer, curve, status.ok() && !cut);
  if (!cut) return status.ok() ? (*trainer)->flush_logs() : status;
  return interrupts->cut((*trainer)->steps_done(), (*trainer)->total_steps(),
                         (*trainer)->options().resume.mode);
}

}  // namespace

int train_command(runtime::Runtime& runtime, int argc, char** argv) {
  const ConfigCommand command{
      .keys = train_keys(),
      .description = "Trains a policy with reinforcement learning: PPO, GRPO and their relatives.",
      .key_names = "verl's names",
      .example =
          "starling train data.dataset_name=toy data.train_batch_size=4 "
          "actor_rollout_ref.model.path=DIR trainer.max_steps=10",
      .dry_run = dry_run,
      .run = train_rl};
  return run_config_command(runtime, command, argc, argv);
}

}  // namespace rl
