// What an estimator asks of the other keys of a run.
#include "rl/run/rl/trainer_options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rl {
namespace {

runtime::Result<TrainerOptions> trainer_options(std::vector<std::string> overrides) {
  overrides.emplace_back("actor_rollout_ref.rollout.n=2");
  const auto config = Config::load({std::nullopt, std::move(overrides)});
  return config.ok() ? TrainerOptions::from_config(*config) : config.status();
}

TEST(TrainerOptions, GreedyResponsesAreNotForPartialRollouts) {
  const std::string remax = "algorithm.adv_estimator=remax",
                    partial = "trainer.v1.trainer_mode=colocate_async";
  EXPECT_TRUE(trainer_options({remax}).ok());
  const auto other = trainer_options({partial});
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  EXPECT_TRUE(other->partial_rollouts.has_value());
  const runtime::Status refused = trainer_options({remax, partial}).status();
  EXPECT_EQ(refused.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("algorithm.adv_estimator: must be another than remax with "
                                   "trainer.v1.trainer_mode=colocate_async: its greedy responses "
                                   "would be of other weights"),
            std::string::npos)
      << refused.message();
}

TEST(TrainerOptions, PromptsAreRevisitedOnlyRightAfterTheirStep) {
  const std::string codapo = "algorithm.adv_estimator=codapo";
  EXPECT_TRUE(trainer_options({codapo}).ok());
  for (const auto& [setting, key] : std::vector<std::pair<std::string, std::string>>{
           {"algorithm.filter_groups.enable=true", "algorithm.filter_groups.enable"},
           {"trainer.v1.trainer_mode=colocate_async", "trainer.v1.trainer_mode"}}) {
    const runtime::Status refused = trainer_options({codapo, setting}).status();
    EXPECT_EQ(refused.code(), runtime::ErrorCode::kUnimplemented) << refused.to_string();
    EXPECT_NE(refused.message().find(codapo + " with " + key), std::string::npos)
        << refused.message();
  }
}

}  // namespace
}  // namespace rl
