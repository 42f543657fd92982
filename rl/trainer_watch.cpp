// What a run's metrics lead to: alarms, early stopping, the best checkpoint.
#include "rl/trainer.h"
#include "runtime/core/log.h"

namespace rl {

void Trainer::watch(const Metrics& metrics) {
  for (const std::string& told : alarms_.observe(metrics)) {
    LOG(warn, "step {}: {}", steps_done_, told);
    if (options_.alarms.action != AlarmAction::kStop || stopping_) continue;
    alarmed_ = runtime::task_failed("stopped after step " + std::to_string(steps_done_) + " (trainer.alarms.action=stop): " + told);
    stopping_ = true;
  }
  if (const std::optional<std::string> reason = early_stop(options_.early_stop, state_.early_stop, metrics)) {
    LOG(info, "stopping after step {}: {}", steps_done_, *reason);
    stopping_ = true;
  }
}

// Once no batch has a finite gradient any more, the weights are lost.
void Trainer::watch_skipped(const Metrics& metrics, std::int64_t mini_batches) {
  constexpr std::int64_t kLostStepsMax = 10;
  for (const char* role : {"actor", "critic"}) {
    const auto skipped = metrics.find(std::string(role) + "/skipped_updates");
    if (skipped == metrics.end()) continue;
    if (skipped->second > 0) LOG(warn, "step {}: {} update(s) of the {} left out, since their gradient was not finite: is its optim.lr too high?", steps_done_ + 1, skipped->second, role);
    std::int64_t& lost = lost_steps_[role];
    lost = skipped->second > 0 && skipped->second >= static_cast<double>(mini_batches) ? lost + 1 : 0;
    if (lost < kLostStepsMax) continue;
    lost_ = runtime::task_failed("step " + std::to_string(steps_done_ + 1) + ": in " + std::to_string(lost) + " steps in a row the " + role +
                                 " had no finite gradient: its weights are lost. Lower its optim.lr, and begin anew (trainer.resume_mode=disable) or from an earlier checkpoint (trainer.resume_from_path)");
  }
}

// Only steps whose weights may be kept are measured against each other: those that were validated, and those whose checkpoint is due.
bool Trainer::is_best(const Metrics& metrics, bool validated) {
  if (options_.save_best.metric.empty() || !(validated || due(options_.save_interval))) return false;
  const auto found = metrics.find(options_.save_best.metric);
  if (found == metrics.end()) {
    if (!metric_missed_ && (validated || !options_.save_best.metric.starts_with("val-"))) {
      metric_missed_ = true;
      LOG(warn, "step {}: trainer.save_best={}: there is no such metric, so that no checkpoint is the best; metrics.jsonl (trainer.logger=[file]) has their names", steps_done_, options_.save_best.metric);
    }
    return false;
  }
  finish_checkpoint();  // which may have been the best
  const BestSoFar before = state_.best;
  if (!state_.best.observe(found->second, options_.save_best.larger_is_better)) return false;
  best_before_ = before;
  return true;
}

}  // namespace rl
