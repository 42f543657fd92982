#include "rl/algo/reward_scaling.h"

#include <algorithm>
#include <cmath>

namespace rl {
namespace {

constexpr double kDeviationMin = 1e-6;

}  // namespace

RewardStatistics observe(const RewardStatistics& before, std::span<const double> rewards,
                         const RewardScalingOptions& options) {
  if (rewards.empty()) return before;
  double sum = 0.0;
  double squares = 0.0;
  for (const double reward : rewards) {
    sum += reward;
    squares += reward * reward;
  }
  const auto count = static_cast<double>(rewards.size());
  const double decay = before.steps == 0 ? 0.0 : options.decay;
  return {.steps = before.steps + 1,
          .mean = decay * before.mean + (1.0 - decay) * sum / count,
          .square = decay * before.square + (1.0 - decay) * squares / count};
}

double scaled_reward(double reward, const RewardStatistics& statistics,
                     const RewardScalingOptions& options) {
  const double variance = std::max(0.0, statistics.square - statistics.mean * statistics.mean);
  const double shifted = options.baseline ? reward - statistics.mean : reward;
  return options.normalize ? shifted / std::max(kDeviationMin, std::sqrt(variance)) : shifted;
}

}  // namespace rl
