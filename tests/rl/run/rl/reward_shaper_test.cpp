#include "rl/run/rl/reward_shaper.h"

#include <gtest/gtest.h>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

using Numbers = std::vector<double>;

class RewardShaperTest : public ::testing::Test {
 protected:
  // A prompt with two samples, of one and two tokens, and their scores.
  StepBatch scored(double first, double second) {
    StepBatch batch = fake_batch(batches_, 1, 1, 2);
    std::vector<Sample>& samples = batch.shares[0].groups[0].samples;
    samples[0].score = samples[0].reward = first;
    samples[1].score = samples[1].reward = second;
    batch.shares[0].reference.kl_penalties = {1.0, 4.0};  // sums over a response's tokens
    return batch;
  }
  static Numbers rewards(const StepBatch& batch) { return batch.all<double>(&Sample::reward); }
  static Numbers scaled(const StepBatch& batch) { return batch.all<double>(&Sample::scaled); }

  FakeBatches batches_;
  Metrics metrics_;
};

TEST_F(RewardShaperTest, WithoutScalingOrKlTheScoreIsTheReward) {
  RewardShaper shaper({}, {});
  StepBatch batch = scored(1, 2);
  EXPECT_EQ(*shaper.shape(batch, metrics_), 0.0);
  EXPECT_EQ(rewards(batch), (Numbers{1, 2}));
  EXPECT_TRUE(metrics_.empty());
}

TEST_F(RewardShaperTest, ScoresAreMeasuredAgainstEarlierStepsAndTheFirstAgainstItself) {
  RewardScaler scaler({.baseline = true, .decay = 0.0});
  StepBatch first = scored(1, 3), second = scored(5, 5);
  scaler.scale(first, metrics_);
  EXPECT_EQ(scaled(first), (Numbers{-1, 1}));
  scaler.scale(second, metrics_);
  EXPECT_EQ(scaled(second), (Numbers{3, 3})) << "less the first step's mean";
  EXPECT_EQ(metrics_.at("critic/reward_baseline"), 2.0);
}

TEST_F(RewardShaperTest, AScalerGoesOnFromWhatWasSaved) {
  const RewardScalingOptions options{.baseline = true, .decay = 0.5};
  RewardScaler scaler(options), restored(options);
  StepBatch first = scored(1, 3), here = scored(5, 6), there = scored(5, 6);
  scaler.scale(first, metrics_);
  RewardState state;
  scaler.save(state);
  restored.restore(state);
  scaler.scale(here, metrics_);
  restored.scale(there, metrics_);
  EXPECT_EQ(scaled(here), scaled(there));
}

TEST_F(RewardShaperTest, TheKlTakesItsShareOfEachReward) {
  KlInReward kl({.coefficient = 0.5});
  StepBatch batch = scored(1, 3);
  EXPECT_EQ(*kl.penalize(batch, metrics_), 0.5);
  EXPECT_EQ(rewards(batch), (Numbers{0.5, 1.0}));
  EXPECT_EQ(metrics_.at("actor/reward_kl_penalty"), 1.5) << "a mean of means over tokens, 1 and 2";
  EXPECT_EQ(metrics_.at("actor/reward_kl_penalty_coeff"), 0.5);
}

TEST_F(RewardShaperTest, TheCoefficientMovesAfterItsStepAndIsSaved) {
  const KlControllerOptions options{
      .coefficient = 1.0, .adaptive = true, .target = 0.1, .horizon = 20};
  KlInReward kl(options), restored(options);
  StepBatch batch = scored(1, 3), next = scored(1, 3);
  EXPECT_EQ(*kl.penalize(batch, metrics_), 1.0);
  RewardState state;
  kl.save(state);
  EXPECT_NEAR(state.kl_coefficient, 1.02, 1e-12) << "a fifth more, times two of twenty samples";
  restored.restore(state);
  EXPECT_EQ(*restored.penalize(next, metrics_), state.kl_coefficient);
}

TEST_F(RewardShaperTest, AReferenceOfOtherSamplesIsAnError) {
  KlInReward kl({.coefficient = 0.5});
  StepBatch batch = scored(1, 3);
  batch.shares[0].reference.kl_penalties.pop_back();
  EXPECT_EQ(kl.penalize(batch, metrics_).status().code(), runtime::ErrorCode::kInternal);
}

TEST_F(RewardShaperTest, TheKlIsTakenFromScaledScores) {
  RewardShaper shaper(RewardScaler({.baseline = true}), KlInReward({.coefficient = 0.5}));
  StepBatch batch = scored(1, 3);
  EXPECT_EQ(*shaper.shape(batch, metrics_), 0.5);
  EXPECT_EQ(scaled(batch), (Numbers{-1, 1}));
  EXPECT_EQ(rewards(batch), (Numbers{-1.5, -1.0}));
}

}  // namespace
}  // namespace rl
