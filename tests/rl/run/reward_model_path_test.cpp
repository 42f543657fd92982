#include "rl/run/reward_model_path.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rl {
namespace {

Config config_of(std::vector<std::string> overrides) {
  return *Config::load({std::nullopt, std::move(overrides)});
}

TEST(RewardModelPath, AModelCountsWhereItIsEnabled) {
  const std::string path = "reward.reward_model.model_path=/models/judge";
  EXPECT_TRUE(reward_models(config_of({path})).empty());
  EXPECT_EQ(reward_models(config_of({path, "reward.reward_model.enable=true"})),
            std::vector<std::string>{"/models/judge"});
}

TEST(RewardModelPath, PartsOfAMixtureMayBeModels) {
  EXPECT_EQ(reward_models(config_of({"reward.mixture=[{rule: gsm8k, weight: 0.5}, {model: /a, "
                                     "weight: 1}, {model: /b, weight: 1}]"})),
            (std::vector<std::string>{"/a", "/b"}));
}

TEST(RewardModelPath, OneThatIsNotThereIsNamedByItsKey) {
  const auto found = with_reward_models_found(
      config_of({"reward.mixture=[{rule: gsm8k, weight: 1}, {model: /nowhere/b, weight: 1}]"}));
  EXPECT_NE(found.status().message().find("reward.mixture[1].model"), std::string::npos)
      << found.status().message();
}

}  // namespace
}  // namespace rl
