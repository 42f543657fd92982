#include "rl/run/rl/warm_start.h"

#include <string>

#include "rl/metrics/step_metrics.h"
#include "rl/run/loss_alarms.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Status WarmStart::run(RunJournal& journal) {
  LossAlarms alarms(options_.alarms);
  for (std::int64_t index = 0; index < options_.steps && !journal.is_alarmed(); ++index) {
    Result<Metrics> metrics = step(index);
    if (!metrics.ok()) return metrics.status();
    for (const std::string& told : alarms.observe(*metrics, "sft"))
      journal.alarm("sft step " + std::to_string(index + 1) + ": " + told, alarms.options().action);
    journal.record({index + 1, options_.steps, 0, std::move(*metrics), "sft"});
  }
  if (journal.is_alarmed()) return journal.take_alarm();
  const Status reset = policy_.reset_optimizer();
  return reset.ok() && saves_ ? policy_.save_reference() : reset;
}

Result<Metrics> WarmStart::step(std::int64_t index) {
  StepTimer timer;
  const Result<DemonstrationStep> demonstrations = batches_();
  if (!demonstrations.ok()) return demonstrations.status();
  std::int64_t tokens = 0;
  std::vector<std::vector<std::int64_t>> lengths;
  for (const DemonstrationBatch& batch : demonstrations->batches) {
    tokens += static_cast<std::int64_t>(batch.responses.values.size());
    lengths.push_back(row_lengths(batch));
  }
  const double rate = learning_rate(options_.schedule(), index);
  std::vector<SupervisedPlan> plans;
  for (LearningPasses& passes : plan_learning(lengths, policy_.limits(), demonstrations->leaves))
    plans.push_back({tokens, rate, std::move(passes.micro_batches), std::move(passes.rounds)});
  Result<Metrics> metrics = policy_.supervise(demonstrations->batches, plans);
  if (!metrics.ok()) return metrics;
  timer.lap("sft");
  (*metrics)["timing_s/sft"] = timer.seconds("sft");
  (*metrics)["sft/lr"] = rate;
  return metrics;
}

}  // namespace rl
