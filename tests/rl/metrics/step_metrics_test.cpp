#include "rl/metrics/step_metrics.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

SampleScalars four_samples() {
  return {.scores = {0, 1, 0.5, 0.5},
          .rewards = {0, 0.9, 0.5, 0.4},
          .advantages = {-1, 1, 0, 0},
          .prompt_tokens = {10, 10, 20, 20},
          .response_tokens = {1, 2, 3, 4},
          .stopped = {1, 1, 1, 0}};
}

TEST(SampleMetrics, HaveVerlsNames) {
  const Metrics metrics = sample_metrics(four_samples());
  EXPECT_DOUBLE_EQ(metrics.at("critic/score/mean"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("critic/rewards/mean"), 0.45);
  EXPECT_DOUBLE_EQ(metrics.at("critic/advantages/max"), 1.0);
  EXPECT_DOUBLE_EQ(metrics.at("response_length/mean"), 2.5);
  EXPECT_DOUBLE_EQ(metrics.at("response_length/clip_ratio"), 0.25);
  EXPECT_DOUBLE_EQ(metrics.at("prompt_length/min"), 10.0);
  EXPECT_DOUBLE_EQ(metrics.at("response/aborted_ratio"), 0.0);
  EXPECT_DOUBLE_EQ(metrics.at("response_length_non_aborted/clip_ratio"), 0.25);
  EXPECT_FALSE(metrics.contains("prompt_length/clip_ratio"));  // the limit is not known
}

TEST(SampleMetrics, AdvantagesAreWeighedByTheTokensThatHaveThem) {
  const Metrics metrics = sample_metrics(four_samples());
  EXPECT_DOUBLE_EQ(metrics.at("critic/advantages/mean"), 0.1);  // (-1 * 1 + 1 * 2) / 10
  EXPECT_DOUBLE_EQ(metrics.at("critic/returns/mean"), 0.1);
  EXPECT_DOUBLE_EQ(metrics.at("critic/returns/min"), -1.0);
}

TEST(SampleMetrics, TokensOfToolsAreLengthButHaveNoAdvantage) {
  SampleScalars samples = four_samples();
  samples.learned_tokens = {1, 1, 2, 2};
  samples.turns = {2, 4, 4, 6};
  const Metrics metrics = sample_metrics(samples);
  EXPECT_DOUBLE_EQ(metrics.at("critic/advantages/mean"), 0.0);  // (-1 * 1 + 1 * 1) / 6
  EXPECT_DOUBLE_EQ(metrics.at("response_length/mean"), 2.5);
  EXPECT_DOUBLE_EQ(metrics.at("num_turns/mean"), 4.0);
  EXPECT_DOUBLE_EQ(metrics.at("num_turns/max"), 6.0);
}

TEST(SampleMetrics, PromptsAtTheLimitAreCounted) {
  SampleScalars samples = four_samples();
  samples.prompt_tokens_max = 20;
  EXPECT_DOUBLE_EQ(sample_metrics(samples).at("prompt_length/clip_ratio"), 0.5);
}

TEST(BalanceMetrics, SayHowUnevenTheWorkersAre) {
  const Metrics metrics = balance_metrics({30, 50, 40}, {39, 41, 40});
  EXPECT_DOUBLE_EQ(metrics.at("global_seqlen/max"), 50.0);
  EXPECT_DOUBLE_EQ(metrics.at("global_seqlen/minmax_diff"), 20.0);
  EXPECT_DOUBLE_EQ(metrics.at("global_seqlen/balanced_max"), 41.0);
  EXPECT_DOUBLE_EQ(metrics.at("global_seqlen/mean"), 40.0);
  EXPECT_TRUE(balance_metrics({}, {}).empty());
}

TEST(SumMetrics, AddsTheWorkersParts) {
  EXPECT_EQ(sum_metrics({{{"a", 1}, {"b", 2}}, {{"a", 3}}}), (Metrics{{"a", 4}, {"b", 2}}));
  EXPECT_EQ(sum_metrics({{{"perf/max_memory_allocated_gb", 1}},
                         {{"perf/max_memory_allocated_gb", 3}},
                         {{"perf/max_memory_allocated_gb", 2}}}),
            (Metrics{{"perf/max_memory_allocated_gb", 3}}));
  EXPECT_TRUE(sum_metrics({}).empty());
}

TEST(StepTimer, LapsAddUpToTheStep) {
  StepTimer timer;
  timer.lap("gen");
  timer.lap("update_actor");
  timer.lap("gen");
  const Metrics metrics = timer.metrics(four_samples(), 2);
  EXPECT_NEAR(metrics.at("timing_s/gen") + metrics.at("timing_s/update_actor"),
              metrics.at("timing_s/step"), 1e-9);
  EXPECT_DOUBLE_EQ(metrics.at("perf/total_num_tokens"), 70.0);
  EXPECT_NEAR(metrics.at("perf/throughput"), 35.0 / metrics.at("timing_s/step"),
              1e-6 * metrics.at("perf/throughput"));
  EXPECT_NEAR(metrics.at("timing_per_token_ms/gen"), timer.seconds("gen") * 100.0, 1e-9);
  EXPECT_EQ(timer.seconds("nothing"), 0.0);
}

}  // namespace
}  // namespace rl
