#include "rl/run/run_journal.h"

#include "runtime/core/log.h"

namespace rl {

void RunJournal::record(const StepRecord& record) {
  logger_.write(record);
  if (on_step_) on_step_(record);
}

void RunJournal::alarm(const std::string& text, AlarmAction action) {
  LOG(warn, "{}", text);
  alarms_.push_back(text);
  if (action != AlarmAction::kStop || stopping_) return;
  alarmed_ = runtime::task_failed("stopped by an alarm (trainer.alarms.action=stop): " + text);
  stopping_ = true;
}

}  // namespace rl
