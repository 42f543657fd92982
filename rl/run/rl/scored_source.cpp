#include "rl/run/rl/scored_source.h"

#include <algorithm>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Of a group whose baseline needs others, a sample alone goes as well.
void mark_groups_too_small(StepBatch& batch, std::int64_t size_min) {
  for (WorkerShare& share : batch.shares) {
    for (SampleGroup& group : share.groups) {
      const auto scored = std::count_if(group.samples.begin(), group.samples.end(),
                                        [](const Sample& sample) { return sample.is_scored; });
      if (scored >= size_min) continue;
      for (Sample& sample : group.samples) sample.is_scored = false;
    }
  }
}

}  // namespace

Result<StepBatch> ScoredSource::next(const SampleRequest& request, StepTimer& timer) {
  Result<GeneratedSamples> samples = generator_->generate(request, timer);
  if (!samples.ok()) return samples.status();
  const std::vector<PromptBatch> prompts = std::move(samples->prompts.batches);
  Result<StepBatch> batch =
      StepBatch::of(std::move(samples->prompts), samples->generated, options_.samples_per_prompt);
  if (!batch.ok()) return batch.status();
  batch->metrics = std::move(samples->metrics);
  std::vector<Metrics> of_workers;
  for (const Generated& part : samples->generated) of_workers.push_back(part.summary.metrics);
  batch->metrics.merge(sum_metrics(of_workers));
  timer.lap("gen");
  Status status = reader_.compare(prompts, *batch, timer);
  if (status.ok()) status = score(*batch, timer);
  if (!status.ok()) return status;
  return batch;
}

Status ScoredSource::score(StepBatch& batch, StepTimer& timer) {
  const auto finish = reward_.begin_score(batch.batches(), batch.tasks());
  Status status = balancer_ != nullptr ? balancer_->balance(batch) : Status();
  if (status.ok() && references_ != nullptr) status = references_->ask(batch, timer);
  if (!status.ok()) return status;
  Result<std::vector<RewardReport>> reports = finish();
  if (!reports.ok()) return reports.status();
  status = batch.take_scores(std::move(*reports));
  timer.lap("reward");
  if (status.ok()) status = reader_.read(batch);
  if (!status.ok() || options_.keeps_unscored) return status;
  const std::vector<std::uint8_t> scored = batch.all<std::uint8_t>(&Sample::is_scored);
  const bool all = std::find(scored.begin(), scored.end(), 0) == scored.end();
  return all ? Status() : leave_out_unscored(batch);
}

// They are left out of all that follows, and of what a reference or a teacher has said already.
Status ScoredSource::leave_out_unscored(StepBatch& batch) {
  mark_groups_too_small(batch, options_.group_size_min);
  const SampleMarks marks = batch.by_worker(
      [](const Sample& sample) { return static_cast<std::uint8_t>(sample.is_scored ? 0 : 1); });
  const Status said = references_ != nullptr ? references_->leave_out(batch, marks) : Status();
  if (!said.ok()) return said;
  const Result<std::vector<Generated>> kept = batches_.leave_out(batch.batches(), marks);
  if (!kept.ok()) return kept.status();
  batch.keep_if([](const Sample& sample) { return sample.is_scored; });
  if (const Status taken = batch.take(*kept); !taken.ok()) return taken;
  if (batch.size() > 0) return {};
  return runtime::task_failed(
      "no sample of the step has a score to learn from: see the warnings on the reward above");
}

}  // namespace rl
