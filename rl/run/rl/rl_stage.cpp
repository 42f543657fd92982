#include "rl/run/rl/rl_stage.h"

#include <utility>

#include "rl/run/rl/step_report.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Result<StageStep> RlStage::step(std::int64_t number) {
  updating_ = false;
  StepTimer timer;
  Result<StepBatch> batch = parts_.source.next({.step = number}, timer);
  if (!batch.ok()) return batch.status();
  const Result<Credit> credit = parts_.credit.assign(*batch, number, timer);
  if (!credit.ok()) return credit.status();
  timer.lap("adv");
  if (const Status dumped = dump(*batch, *credit, number, timer); !dumped.ok()) return dumped;

  updating_ = true;
  Metrics metrics = credit->metrics;
  metrics.merge(reward_metrics(batch->reports));
  metrics.insert(batch->metrics.begin(), batch->metrics.end());
  const Result<std::int64_t> mini_batches =
      parts_.update.update(*batch, *credit, number, metrics, timer);
  if (!mini_batches.ok()) return mini_batches.status();
  if (const Status learned = learn_order(*batch); !learned.ok()) return learned;

  steps_done_ = number;
  epoch_ = batch->epoch;
  add_sample_metrics(*batch, *credit, options_.prompt_tokens_max, timer, metrics);
  const SkippedUpdates::Seen seen = parts_.skipped.observe(metrics, *mini_batches, number);
  metrics["training/global_step"] = static_cast<double>(number);
  metrics["training/epoch"] = static_cast<double>(epoch_);
  return StageStep{
      .metrics = std::move(metrics), .diverging = seen.diverging, .diverged = seen.diverged};
}

Status RlStage::begin() {
  if (std::exchange(begun_, true)) return {};
  return parts_.begin(steps_done_);
}

// Every N steps, and after the last one.
bool RlStage::validates_after(std::int64_t step, std::int64_t total_steps) const {
  const std::int64_t interval = options_.validation_interval;
  return parts_.validator != nullptr && interval > 0 &&
         (step % interval == 0 || step == total_steps);
}

Result<std::int64_t> RlStage::restore(const std::filesystem::path& folder,
                                      const nlohmann::ordered_json& state) {
  const Result<SavedAt> at = parts_.state.restore(folder, state);
  if (!at.ok()) return at.status();
  steps_done_ = at->step;
  epoch_ = at->epoch;
  parts_.skipped.reset();
  return at->step;
}

Status RlStage::dump(const StepBatch& batch, const Credit& credit, std::int64_t number,
                     StepTimer& timer) {
  if (!parts_.dump.is_wanted()) return {};
  const Result<DumpedBatch> dumped = dumped_step(batch, credit, parts_.estimates);
  if (!dumped.ok()) return dumped.status();
  parts_.dump.write(number, /*append=*/false, *dumped);
  timer.lap("dump_rollouts");
  return {};
}

// Replayed samples are of no row.
Status RlStage::learn_order(const StepBatch& batch) {
  if (!parts_.learn_order) return {};
  std::vector<RowOutcome> outcomes;
  for (const WorkerShare& share : batch.shares) {
    for (const SampleGroup& group : share.groups) {
      if (group.row < 0) continue;
      for (const Sample& sample : group.samples)
        outcomes.push_back(
            {.row = group.row, .score = sample.score, .response_tokens = sample.response_tokens});
    }
  }
  return parts_.learn_order(outcomes);
}

}  // namespace rl
