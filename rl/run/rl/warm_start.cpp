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
  const Result<std::vector<DemonstrationBatch>> batches = batches_();
  if (!batches.ok()) return batches.status();
  std::int64_t tokens = 0;
  std::vector<std::vector<std::int64_t>> lengths;
  for (const DemonstrationBatch& batch : *batches) {
    tokens += static_cast<std::int64_t>(batch.responses.values.size());
    lengths.push_back(row_lengths(batch));
  }
  const double rate = learning_rate(options_.schedule(), index);
  std::vector<SupervisedPlan> plans;
  for (auto& micro_batches : plan_rounds(lengths, policy_.limits()))
    plans.push_back({tokens, rate, std::move(micro_batches)});
  Result<Metrics> metrics = policy_.supervise(*batches, plans);
  if (!metrics.ok()) return metrics;
  timer.lap("sft");
  (*metrics)["timing_s/sft"] = timer.seconds("sft");
  (*metrics)["sft/lr"] = rate;
  return metrics;
}

}  // namespace rl
