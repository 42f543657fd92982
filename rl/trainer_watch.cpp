// What a run's metrics lead to: alarms and early stopping.
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

}  // namespace rl
