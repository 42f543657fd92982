// RewardShaper: from the scores of a step's samples to their rewards.
#pragma once

#include <optional>
#include <utility>

#include "rl/algo/kl_controller.h"
#include "rl/algo/reward_scaling.h"
#include "rl/metrics/metrics.h"
#include "rl/run/rl/step_batch.h"
#include "runtime/core/result.h"

namespace rl {

/// What steps leave to the next ones; saved with checkpoints. Each part fills in its own.
struct RewardState {
  double kl_coefficient = 0.0;
  RewardStatistics statistics = {};

  bool operator==(const RewardState&) const = default;
};

/// Rewards by the statistics of the steps before: a moving-average baseline and normalisation, so
/// that no response is measured against itself.
class RewardScaler {
 public:
  explicit RewardScaler(const RewardScalingOptions& options) : options_(options) {}

  /// Sets Sample::scaled.
  void scale(StepBatch& batch, Metrics& metrics);

  void save(RewardState& state) const { state.statistics = past_; }
  void restore(const RewardState& state) { past_ = state.statistics; }

 private:
  RewardScalingOptions options_;
  RewardStatistics past_;
};

/// KL in the reward: each response's reward less the coefficient times its estimated KL to the
/// reference; then the controller's move.
class KlInReward {
 public:
  explicit KlInReward(const KlControllerOptions& options)
      : options_(options), coefficient_(options.coefficient) {}

  /// Takes it from Sample::reward. Returns the coefficient of this step. kInternal: the reference
  /// scored another number of samples.
  runtime::Result<double> penalize(StepBatch& batch, Metrics& metrics);

  void save(RewardState& state) const { state.kl_coefficient = coefficient_; }
  void restore(const RewardState& state) { coefficient_ = state.kl_coefficient; }

 private:
  KlControllerOptions options_;
  double coefficient_;
};

class RewardShaper {
 public:
  RewardShaper(std::optional<RewardScaler> scaler, std::optional<KlInReward> kl)
      : scaler_(std::move(scaler)), kl_(std::move(kl)) {}

  /// Sets Sample::scaled and Sample::reward. Returns the coefficient of the KL in them; 0: none.
  runtime::Result<double> shape(StepBatch& batch, Metrics& metrics);

  void save(RewardState& state) const;
  void restore(const RewardState& state);

 private:
  std::optional<RewardScaler> scaler_;
  std::optional<KlInReward> kl_;
};

}  // namespace rl
