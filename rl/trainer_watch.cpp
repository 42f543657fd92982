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
