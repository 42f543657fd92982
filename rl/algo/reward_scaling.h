// Rewards measured against those of earlier steps: a moving-average baseline, and normalisation by
// a moving standard deviation.
#pragma once

#include <cstdint>
#include <span>

namespace rl {

struct RewardScalingOptions {
  bool baseline = false;   // rewards less the moving average of earlier steps'; Williams 1992,
                           // section 4 ("reinforcement comparison")
  bool normalize = false;  // rewards over the moving standard deviation of earlier steps'
  double decay = 0.9;      // how much of the moving statistics a step leaves; in [0, 1)

  bool enabled() const { return baseline || normalize; }
};

/// What earlier steps' rewards were like; the whole state, saved with checkpoints.
struct RewardStatistics {
  std::int64_t steps = 0;
  double mean = 0.0;
  double square = 0.0;  // mean of squares

  bool operator==(const RewardStatistics&) const = default;
};

/// Takes in a step's rewards. The first step's own are all there is to know of earlier ones, so it
/// is measured against itself.
RewardStatistics observe(const RewardStatistics& before, std::span<const double> rewards,
                         const RewardScalingOptions& options);

/// One reward as `statistics`, of the steps before, make it.
double scaled_reward(double reward, const RewardStatistics& statistics,
                     const RewardScalingOptions& options);

}  // namespace rl
