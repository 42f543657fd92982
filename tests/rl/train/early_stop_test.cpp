#include "rl/train/early_stop.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"

namespace rl {
namespace {

EarlyStopOptions options_for(const char* metric) {
  EarlyStopOptions options;
  options.metric = metric;
  options.patience = 2;
  return options;
}

TEST(BestSoFar, CountsMeasurementsThatWereNoBetter) {
  BestSoFar best;
  EXPECT_TRUE(best.observe(1.0, true, 0.1));
  EXPECT_FALSE(best.observe(1.05, true, 0.1));
  EXPECT_FALSE(best.observe(std::numeric_limits<double>::quiet_NaN(), true, 0.1));
  EXPECT_EQ(best.since, 2);
  EXPECT_TRUE(best.observe(1.2, true, 0.1));
  EXPECT_EQ(best.since, 0);
  BestSoFar least;
  EXPECT_TRUE(least.observe(1.0, false));
  EXPECT_FALSE(least.observe(1.0, false));
  EXPECT_TRUE(least.observe(0.5, false));
}

TEST(BestSoFar, ComesBackFromACheckpoint) {
  BestSoFar best;
  best.observe(0.1 + 0.2, true);
  best.observe(0.0, true);
  const BestSoFar again = BestSoFar::from_json(nlohmann::ordered_json::parse(best.to_json().dump()));
  EXPECT_EQ(again.value, best.value);
  EXPECT_EQ(again.since, 1);
  EXPECT_FALSE(BestSoFar::from_json(3).value);
}

TEST(EarlyStop, WaitsForAnImprovementSoLong) {
  const EarlyStopOptions options = options_for("score");
  BestSoFar best;
  EXPECT_FALSE(early_stop(options, best, {{"score", 0.5}}));
  EXPECT_FALSE(early_stop(options, best, {{"score", 0.4}}));
  EXPECT_FALSE(early_stop(options, best, {{"other", 0.4}}));
  const auto reason = early_stop(options, best, {{"score", 0.5}});
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("score has not improved in 2 measurements, the best was 0.5"), std::string::npos) << *reason;
}

TEST(EarlyStop, ReachesItsTarget) {
  EarlyStopOptions options = options_for("score");
  options.target = 0.9;
  BestSoFar best;
  EXPECT_FALSE(early_stop(options, best, {{"score", 0.89}}));
  EXPECT_TRUE(early_stop(options, best, {{"score", 0.9}}));
  options.larger_is_better = false;
  EXPECT_TRUE(early_stop(options, best, {{"score", 0.1}}));
}

TEST(EarlyStop, StagesTakeTheDirectionFromTheMetricsName) {
  const auto config = [](const std::string& metric, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"trainer.test_freq=after_each_epoch", "trainer.early_stop.metric=" + metric, "trainer.save_best=" + metric});
    return Config::load({.file = {}, .overrides = std::move(more), .keys = &sft_keys()}).value();
  };
  for (const auto& [metric, larger] : {std::pair("val/loss", false), std::pair("val/kl", false), std::pair("val/rewards/accuracies", true)}) {
    EXPECT_EQ(EarlyStopOptions::from_config(config(metric))->larger_is_better, larger) << metric;
    EXPECT_EQ(SaveBestOptions::from_config(config(metric))->larger_is_better, larger) << metric;
  }
  EXPECT_TRUE(EarlyStopOptions::from_config(config("val/loss", {"trainer.early_stop.mode=max"}))->larger_is_better);
  EXPECT_TRUE(SaveBestOptions::from_config(config("val/loss", {"trainer.save_best_mode=max"}))->larger_is_better);
  EXPECT_FALSE(EarlyStopOptions::from_config(config("train/loss"))->larger_is_better);
  EXPECT_NE(SaveBestOptions::from_config(config("train/loss")).status().message().find("trainer.save_freq"), std::string::npos);
}

}  // namespace
}  // namespace rl
