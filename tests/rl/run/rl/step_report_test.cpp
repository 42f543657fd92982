#include "rl/run/rl/step_report.h"

#include <gtest/gtest.h>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

// Two workers with a prompt each; the first prompt's samples score the same.
class StepReportTest : public ::testing::Test {
 protected:
  StepReportTest() : batch_(fake_batch(batches_, 2, 2, 2)) {
    batch_.generated_tokens = {5, 7};
    for (WorkerShare& share : batch_.shares) {
      for (SampleGroup& group : share.groups) {
        for (Sample& sample : group.samples) {
          sample.score = group.prompt == 0 ? 1.0 : static_cast<double>(&sample - &group.samples[0]);
          sample.advantage = 0.5F;
        }
      }
    }
  }
  Metrics report(const Credit& credit) {
    Metrics metrics{{"actor/loss", 2.0}};
    add_sample_metrics(batch_, credit, /*prompt_tokens_max=*/1, StepTimer(), metrics);
    return metrics;
  }

  FakeBatches batches_;
  StepBatch batch_;
};

TEST_F(StepReportTest, AddsWhatSamplesSayToWhatWorkersSaid) {
  const Metrics metrics = report({});
  EXPECT_EQ(metrics.at("actor/loss"), 2.0);
  EXPECT_EQ(metrics.at("critic/score/mean"), 0.75);
  EXPECT_EQ(metrics.at("critic/score/equal_groups"), 0.5);
  EXPECT_EQ(metrics.at("critic/advantages/mean"), 0.5);
  EXPECT_EQ(metrics.at("prompt_length/clip_ratio"), 1.0);
  EXPECT_EQ(metrics.at("global_seqlen/max"), 7.0);
  EXPECT_EQ(metrics.at("global_seqlen/balanced_min"), 5.0) << "1 + 1 and 1 + 2 tokens";
}

TEST_F(StepReportTest, AdvantagesOfTokensAreNoNumbersOfSamples) {
  const Metrics metrics = report({.per_token = true});
  EXPECT_FALSE(metrics.contains("critic/advantages/mean"));
  EXPECT_FALSE(metrics.contains("critic/score/equal_groups"));
}

TEST_F(StepReportTest, ConversationsOfUnknownLengthAreNotCounted) {
  EXPECT_FALSE(report({}).contains("num_turns/mean"));
  batch_.shares[1].groups[0].samples[0].turns = 6;
  EXPECT_EQ(report({}).at("num_turns/mean"), 6.0);
}

}  // namespace
}  // namespace rl
