#include "rl/checkpoint/early_stop.h"

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
  options.goal.metric = metric;
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
  const Goal goal{"score", true};
  const auto state =
      nlohmann::ordered_json::parse(nlohmann::ordered_json{{"best", best.to_json(goal)}}.dump());
  const BestSoFar again = BestSoFar::from_json(state, "best", goal);
  EXPECT_EQ(again.value, best.value);
  EXPECT_EQ(again.last, 0.0);
  EXPECT_EQ(again.since, 1);
}

TEST(BestSoFar, KnowsNothingOfAnotherGoal) {
  BestSoFar best;
  best.observe(0.5, true);
  const nlohmann::ordered_json state{{"best", best.to_json({"score", true})}, {"odd", 3}};
  for (const Goal& other : {Goal{"score", false}, Goal{"reward", true}, Goal{}})
    EXPECT_FALSE(BestSoFar::from_json(state, "best", other).value) << other.metric;
  for (const char* key : {"odd", "none"})
    EXPECT_FALSE(BestSoFar::from_json(state, key, {"score", true}).value) << key;
}

TEST(EarlyStop, WaitsForAnImprovementSoLong) {
  EarlyStop stop(options_for("score"));
  EXPECT_FALSE(stop.observe({{"score", 0.5}}));
  EXPECT_FALSE(stop.observe({{"score", 0.4}}));
  EXPECT_FALSE(stop.observe({{"other", 0.4}}));
  const auto reason = stop.observe({{"score", 0.5}});
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("score has not improved in 2 measurements, the best was 0.5"),
            std::string::npos)
      << *reason;
}

TEST(EarlyStop, ReachesItsTarget) {
  EarlyStopOptions options = options_for("score");
  options.target = 0.9;
  EarlyStop stop(options);
  EXPECT_FALSE(stop.observe({{"score", 0.89}}));
  EXPECT_TRUE(stop.observe({{"score", 0.9}}));
  options.goal.larger_is_better = false;
  EXPECT_TRUE(EarlyStop(options).observe({{"score", 0.1}}));
}

TEST(EarlyStop, StaysAfterACheckpointUntilItIsAskedForLess) {
  EarlyStopOptions options = options_for("score");
  EarlyStop stop(options);
  for (const double score : {0.5, 0.4, 0.3}) (void)stop.observe({{"score", score}});
  const nlohmann::ordered_json state{{EarlyStop::kStateKey, stop.to_json()}};
  const auto reason = [&](const EarlyStopOptions& now) {
    EarlyStop again(now);
    again.restore(state);
    return again.reason_to_stop().value_or("");
  };
  EXPECT_EQ(reason(options), *stop.reason_to_stop());
  EXPECT_NE(reason(options), "");
  EXPECT_EQ(reason(options_for("other")), "");
  EXPECT_EQ(reason({}), "");
  options.patience = 3;
  EXPECT_EQ(reason(options), "");
  options.target = 0.3;
  EXPECT_NE(reason(options), "");
}

TEST(EarlyStop, StagesTakeTheDirectionFromTheMetricsName) {
  const auto config = [](const std::string& metric, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"trainer.test_freq=after_each_epoch",
                             "trainer.early_stop.metric=" + metric, "trainer.save_best=" + metric});
    return Config::load({.file = {}, .overrides = std::move(more), .keys = &sft_keys()}).value();
  };
  for (const auto& [metric, larger] : {std::pair("val/loss", false), std::pair("val/kl", false),
                                       std::pair("val/rewards/accuracies", true)}) {
    EXPECT_EQ(EarlyStopOptions::from_config(config(metric))->goal.larger_is_better, larger)
        << metric;
    EXPECT_EQ(SaveBestOptions::from_config(config(metric))->goal.larger_is_better, larger)
        << metric;
  }
  EXPECT_TRUE(EarlyStopOptions::from_config(config("val/loss", {"trainer.early_stop.mode=max"}))
                  ->goal.larger_is_better);
  EXPECT_TRUE(SaveBestOptions::from_config(config("val/loss", {"trainer.save_best_mode=max"}))
                  ->goal.larger_is_better);
  EXPECT_FALSE(EarlyStopOptions::from_config(config("train/loss"))->goal.larger_is_better);
  EXPECT_NE(SaveBestOptions::from_config(config("train/loss"))
                .status()
                .message()
                .find("trainer.save_freq"),
            std::string::npos);
}

}  // namespace
}  // namespace rl
