#include "rl/run/rl/token_credit.h"

#include <cstdint>
#include <map>

#include "rl/batch/worker_lists.h"

namespace rl {
namespace {

std::vector<EstimateTask> estimate_tasks(const StepBatch& batch, double kl_coefficient,
                                         const std::vector<PassLimits>& limits) {
  std::vector<EstimateTask> tasks;
  const ScoringPasses passes = plan_scoring(batch.tokens_by_sample(), limits);
  for (const WorkerShare& share : batch.shares) {
    EstimateTask& task = tasks.emplace_back();
    task.kl_coefficient = kl_coefficient;
    task.micro_batches = passes[tasks.size() - 1];
    for (const SampleGroup& group : share.groups) {
      for (const Sample& sample : group.samples) {
        task.scores.push_back(sample.scaled);
        if (sample.baseline) task.baselines.push_back(*sample.baseline);
      }
    }
  }
  return tasks;
}

// Added up in the order of the prompts, so that who has which sample does not matter.
Moments advantages_in_order(const StepBatch& batch, const std::vector<Estimated>& estimated) {
  std::map<std::int64_t, Moments> of_prompts;
  for (std::size_t worker = 0; worker < estimated.size(); ++worker) {
    auto of_sample = estimated[worker].summary.advantages_of_samples.begin();
    for (const SampleGroup& group : batch.shares[worker].groups) {
      for (std::size_t i = 0; i < group.samples.size(); ++i)
        of_prompts[group.prompt].add(*of_sample++);
    }
  }
  Moments all;
  for (const auto& [prompt, moments] : of_prompts) all.add(moments);
  return all;
}

}  // namespace

runtime::Status TokenCredit::assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                                    StepTimer& timer) {
  LogprobRefs logprobs;  // none, unless the KL is in the reward
  for (const WorkerShare& share : batch.shares) {
    if (kl_coefficient != 0.0) logprobs.push_back(share.reference.logprobs);
  }
  const runtime::Result<std::vector<Estimated>> estimated = calls_.estimate(
      batch.batches(), logprobs, estimate_tasks(batch, kl_coefficient, calls_.limits()));
  if (!estimated.ok()) return estimated.status();
  if (options_.has_critic) timer.lap("values");
  EstimateSummary all;
  for (const Estimated& part : *estimated) all.add(part.summary);
  if (batch.leaves > 0) {
    for (std::size_t worker = 0; worker < estimated->size(); ++worker) {
      if ((*estimated)[worker].summary.advantages_of_samples.size() != batch.shares[worker].size())
        return runtime::internal_error("a worker estimated another number of samples");
    }
    all.advantages = advantages_in_order(batch, *estimated);
  }
  credit.per_token = true;
  credit.estimates = select(*estimated, &Estimated::estimates);
  if (options_.whitens) {
    credit.scaling = AdvantageScaling::whitening(all.advantages);
    all.advantages = all.advantages.scaled(credit.scaling.mean,
                                           credit.scaling.scale);  // as they are learned from
  }
  credit.metrics.merge(all.metrics());
  return {};
}

}  // namespace rl
