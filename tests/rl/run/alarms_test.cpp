#include "rl/run/alarms.h"

#include <gtest/gtest.h>

#include <limits>

namespace rl {
namespace {

std::vector<std::string> observe(Alarms& alarms, Metrics metrics) {
  const auto told = alarms.observe(metrics);
  std::size_t marked = 0;
  for (const auto& [name, value] : metrics) marked += name.starts_with("alarms/") ? 1 : 0;
  EXPECT_EQ(marked, told.size()) << "the metrics have them, too";
  return told;
}

std::vector<std::string> observe(const AlarmOptions& options, const Metrics& metrics) {
  Alarms alarms(options);
  return observe(alarms, metrics);
}

TEST(Alarms, AreToldOncePerRunOfBadSteps) {
  AlarmOptions options;
  options.steps = 2;
  Alarms alarms(options);
  const Metrics bad{{"actor/ppo_kl", 3.0}};
  const Metrics good{{"actor/ppo_kl", 0.01}};
  EXPECT_TRUE(observe(alarms, bad).empty());
  const auto told = observe(alarms, bad);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("actor/ppo_kl is 3, above 0.5 (trainer.alarms.ppo_kl_max), for 2 step(s); "
                         "lower actor_rollout_ref.actor.optim.lr"),
            std::string::npos)
      << told[0];
  EXPECT_TRUE(observe(alarms, bad).empty());
  EXPECT_TRUE(observe(alarms, good).empty());
  EXPECT_TRUE(observe(alarms, bad).empty());
  EXPECT_TRUE(observe(alarms, {}).empty());  // a step that does not say
  EXPECT_EQ(observe(alarms, bad).size(), 1u);
}

TEST(Alarms, EachHasItsLimit) {
  AlarmOptions options;
  options.steps = 1;
  const std::vector<std::pair<const char*, double>> bad{
      {"actor/kl_loss", 6.0},
      {"actor/reward_kl_penalty", 6.0},
      {"actor/entropy", 0.0},
      {"critic/score/equal_groups", 1.0},
      {"response_length/clip_ratio", 1.0},
      {"actor/ppo_kl", std::numeric_limits<double>::quiet_NaN()}};
  for (const auto& [metric, value] : bad) {
    const auto told = observe(options, {{metric, value}});
    ASSERT_EQ(told.size(), 1u) << metric;
    EXPECT_NE(told[0].find(metric), std::string::npos) << told[0];
  }
  const Metrics good{{"actor/kl_loss", 0.1},
                     {"actor/entropy", 1.0},
                     {"critic/score/equal_groups", 0.5},
                     {"response_length/clip_ratio", 0.5},
                     {"actor/ppo_kl", 0.01}};
  EXPECT_TRUE(observe(options, good).empty());
  options.action = AlarmAction::kOff;
  EXPECT_TRUE(observe(options, {{"actor/entropy", 0.0}}).empty());
}

TEST(EqualScoreGroups, AResponseAloneIsNoGroup) {
  EXPECT_DOUBLE_EQ(equal_score_groups({1, 1, 0, 1, 5, 0, 0, 0}, {2, 2, 1, 3}), 2.0 / 3.0);
  EXPECT_LT(equal_score_groups({1, 2}, {1, 1, 0}), 0.0);
}

}  // namespace
}  // namespace rl
