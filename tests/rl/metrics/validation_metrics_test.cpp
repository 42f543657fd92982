#include "rl/metrics/validation_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

TEST(ValidationMetrics, OneAnswerAPromptGivesTheMeanAlone) {
  const Metrics metrics = validation_metrics(
      {{"gsm8k", {{"reward", {1}}}}, {"gsm8k", {{"reward", {0}}}}, {"", {{"reward", {0.5}}}}});
  EXPECT_EQ(metrics,
            (Metrics{{"val-core/gsm8k/reward/mean@1", 0.5}, {"val-core/data/reward/mean@1", 0.5}}));
}

TEST(ValidationMetrics, BestAndWorstOfSeveralAnswers) {
  const Metrics metrics = validation_metrics(
      {{"gsm8k", {{"reward", {0, 1, 0, 0}}}}, {"gsm8k", {{"reward", {1, 1, 1, 1}}}}});
  EXPECT_DOUBLE_EQ(metrics.at("val-core/gsm8k/reward/mean@4"), 0.625);
  // Of the first prompt: 1 - (3/4)^n that the right answer is among n drawn; all n right with
  // (1/4)^n.
  EXPECT_DOUBLE_EQ(metrics.at("val-aux/gsm8k/reward/best@2/mean"), (1 - 0.5625 + 1) / 2);
  EXPECT_DOUBLE_EQ(metrics.at("val-core/gsm8k/reward/best@4/mean"), (1 - 0.31640625 + 1) / 2);
  EXPECT_DOUBLE_EQ(metrics.at("val-aux/gsm8k/reward/worst@2/mean"), (0.0625 + 1) / 2);
  EXPECT_DOUBLE_EQ(metrics.at("val-aux/gsm8k/reward/std@4"), std::sqrt(0.1875) / 2);
  EXPECT_FALSE(metrics.contains("val-core/gsm8k/reward/best@2/mean"));
}

TEST(ValidationMetrics, PromptsWithoutAScoreAreLeftOut) {
  EXPECT_TRUE(validation_metrics({{"gsm8k", {{"reward", {}}}}}).empty());
  const Metrics metrics = validation_metrics(
      {{"gsm8k", {{"reward", {0, 1}}}}, {"gsm8k", {{"reward", {1}}}}, {"gsm8k", {{"reward", {}}}}});
  EXPECT_DOUBLE_EQ(metrics.at("val-core/gsm8k/reward/mean@2"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("val-aux/gsm8k/reward/mean@1"), 1.0);
}

TEST(ValidationMetrics, AccuracyTakesTheRewardsPlaceAndMissingValuesAreLeftOut) {
  const Metrics metrics = validation_metrics(
      {{"", {{"reward", {2, 0}}, {"acc", {1, 0}}, {"format", {std::nan(""), 1}}}}});
  EXPECT_DOUBLE_EQ(metrics.at("val-core/data/acc/mean@2"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("val-aux/data/reward/mean@2"), 1.0);
  EXPECT_DOUBLE_EQ(metrics.at("val-aux/data/format/mean@1"), 1.0);
}

}  // namespace
}  // namespace rl
