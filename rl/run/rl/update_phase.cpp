#include "rl/run/rl/update_phase.h"

#include <utility>
#include <vector>

#include "rl/worker/update_loop.h"

namespace rl {
namespace {

LogprobRefs logprobs_of(const StepBatch& batch, Referenced WorkerShare::*said) {
  LogprobRefs logprobs;
  for (const WorkerShare& share : batch.shares) logprobs.push_back((share.*said).logprobs);
  return logprobs;
}

using Plan = std::vector<std::vector<MiniBatch>>;

// A role's mini-batches, cut by what the passes of its workers may take.
Plan cut_for(const std::vector<PassLimits>& limits, Plan plan, const StepBatch& batch) {
  add_micro_batches(plan, batch.tokens_by_sample(), limits, batch.sample_leaves());
  return plan;
}

}  // namespace

runtime::Result<std::int64_t> UpdatePhase::update(const StepBatch& batch, const Credit& credit,
                                                  std::int64_t step, Metrics& metrics,
                                                  StepTimer& timer) {
  const double rate = learning_rate(options_.policy_rate, step - 1);
  const double critic_rate = learning_rate(options_.critic_rate, step - 1);
  const bool policy_waits = step < options_.critic_warmup;
  const auto mini_batches = plan_mini_batches(batch.shards(), batch.group_sizes(),
                                              batch.by_worker(&Sample::learned_tokens), credit.use);
  const auto advantages = batch.by_worker(&Sample::advantage);
  const Plan policy_batches = cut_for(calls_.policy_limits(), mini_batches, batch);
  const ScoringPasses scoring = plan_scoring(batch.tokens_by_sample(), calls_.policy_limits());
  const Plan critic_batches = calls_.has_critic()
                                  ? cut_for(calls_.critic_limits(), mini_batches, batch)
                                  : Plan(calls_.workers());
  std::vector<UpdatePlan> plans;
  std::vector<UpdatePlan> critic_plans;
  for (std::size_t worker = 0; worker < calls_.workers(); ++worker) {
    plans.push_back({credit.per_token ? std::vector<float>() : advantages[worker],
                     policy_batches[worker], rate, credit.scaling, policy_waits, credit.use[worker],
                     scoring[worker]});
    critic_plans.push_back(
        {{}, critic_batches[worker], critic_rate, {}, false, credit.use[worker]});
  }
  if (calls_.has_critic()) {
    auto learned = calls_.update_critic(batch.batches(), credit.estimates, critic_plans);
    if (!learned.ok()) return learned.status();
    metrics.merge(*learned);
    metrics["critic/lr"] = critic_rate;
    timer.lap("update_critic");
  }
  if (!calls_.has_critic() || !policy_waits) {
    const LogprobRefs reference =
        options_.reads_reference ? logprobs_of(batch, &WorkerShare::reference) : LogprobRefs();
    auto updated = calls_.update_policy(batch.batches(), reference, plans, credit.estimates,
                                        logprobs_of(batch, &WorkerShare::taught));
    if (!updated.ok()) return updated.status();
    metrics.merge(*updated);
    metrics["actor/lr"] = rate;
    timer.lap("update_actor");
  }
  return static_cast<std::int64_t>(mini_batches.front().size());
}

}  // namespace rl
