// What a run's metrics lead to: alarms and early stopping.
#include <cmath>

#include "rl/trainer.h"
#include "runtime/core/log.h"

namespace rl {

void Trainer::alarm(const std::string& told, AlarmAction action) {
  LOG(warn, "{}", told);
  told_.push_back(told);
  if (action != AlarmAction::kStop || stopping_) return;
  alarmed_ = runtime::task_failed("stopped by an alarm (trainer.alarms.action=stop): " + told);
  stopping_ = true;
}

void Trainer::watch(Metrics& metrics) {
  for (const std::string& told : alarms_.observe(metrics))
    alarm("step " + std::to_string(steps_done_) + ": " + told, options_.alarms.action);
  if (const std::optional<std::string> reason = state_.early_stop.observe(metrics)) {
    LOG(info, "stopping after step {}: {}", steps_done_, *reason);
    stopping_ = true;
  }
}

void Trainer::watch_skipped(const Metrics& metrics, std::int64_t mini_batches) {
  lost_ = {};
  bool losing = false;  // the last step took no update of a role
  for (const char* role : {"actor", "critic"}) {
    const auto found = metrics.find(std::string(role) + "/skipped_updates");
    if (found == metrics.end()) continue;
    const std::int64_t skipped = std::lround(found->second);  // a sum of the workers' shares
    if (skipped > 0)
      LOG(warn,
          "step {}: {} update(s) of the {} left out, since their gradient was not finite: is its "
          "optim.lr too high?",
          steps_done_, skipped, role);
    const runtime::Status lost = lost_weights_[role].observe(
        steps_done_, skipped > 0 && skipped >= mini_batches * passes_.at(role), role);
    if (!lost.ok()) lost_ = lost;
    losing = losing || lost_weights_.at(role).losing();
  }
  saver_.observe(losing);
}

}  // namespace rl
