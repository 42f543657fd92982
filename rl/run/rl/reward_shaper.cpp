#include "rl/run/rl/reward_shaper.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rl {

using runtime::Result;

void RewardScaler::scale(StepBatch& batch, Metrics& metrics) {
  const RewardStatistics now = observe(past_, batch.all<double>(&Sample::score), options_);
  const RewardStatistics& past = past_.steps == 0 ? now : past_;
  batch.for_each(
      [&](Sample& sample) { sample.scaled = scaled_reward(sample.score, past, options_); });
  metrics["critic/reward_baseline"] = past.mean;
  past_ = now;
}

Result<double> KlInReward::penalize(StepBatch& batch, Metrics& metrics) {
  double kl_sum = 0.0;  // of each response's mean over its tokens, as verl's controller takes it
  std::int64_t count = 0;
  for (WorkerShare& share : batch.shares) {
    const std::vector<double>& penalties = share.reference.kl_penalties;
    if (penalties.size() != share.size())
      return runtime::internal_error("the reference scored another number of samples");
    auto penalty = penalties.begin();
    for (SampleGroup& group : share.groups) {
      for (Sample& sample : group.samples) {
        sample.reward -= coefficient_ * *penalty;
        kl_sum += *penalty++ / static_cast<double>(sample.learned_tokens);
        ++count;
      }
    }
  }
  const double kl = kl_sum / static_cast<double>(std::max<std::int64_t>(count, 1));
  metrics["actor/reward_kl_penalty"] = kl;
  metrics["actor/reward_kl_penalty_coeff"] = coefficient_;
  return std::exchange(coefficient_, next_kl_coefficient(options_, coefficient_, kl, count));
}

Result<double> RewardShaper::shape(StepBatch& batch, Metrics& metrics) {
  batch.for_each([](Sample& sample) { sample.scaled = sample.score; });
  if (scaler_) scaler_->scale(batch, metrics);
  batch.for_each([](Sample& sample) { sample.reward = sample.scaled; });
  return kl_ ? kl_->penalize(batch, metrics) : 0.0;
}

void RewardShaper::save(RewardState& state) const {
  if (scaler_) scaler_->save(state);
  if (kl_) kl_->save(state);
}

void RewardShaper::restore(const RewardState& state) {
  if (scaler_) scaler_->restore(state);
  if (kl_) kl_->restore(state);
}

}  // namespace rl
