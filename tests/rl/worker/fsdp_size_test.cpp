#include "rl/worker/fsdp_size.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/policy_options.h"

namespace rl {
namespace {

const std::string kFsdpConfig = "actor_rollout_ref.actor.fsdp_config.";

Config sharding_config(std::vector<std::string> overrides) {
  auto config = Config::load({.file = {}, .overrides = std::move(overrides)});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return std::move(*config);
}

TEST(FsdpSize, IsARolesOwnAndAllRanksByDefault) {
  EXPECT_EQ(shard_ranks_from_config(sharding_config({}), kActorRole).value(), 0);
  EXPECT_EQ(shard_ranks_from_config(sharding_config({}), kCriticRole).value(), 0);
  const Config two = sharding_config({kFsdpConfig + "fsdp_size=2"});
  EXPECT_EQ(shard_ranks_from_config(two, kActorRole).value(), 2);
  EXPECT_EQ(shard_ranks_from_config(two, kCriticRole).value(), 0);
  EXPECT_EQ(shard_ranks_from_config(sharding_config({"critic.model.fsdp_config.fsdp_size=4"}),
                                    kCriticRole)
                .value(),
            4)
      << "by its older name";
  const auto stage =
      Config::load({.file = {}, .overrides = {"engine.fsdp_size=2"}, .keys = &sft_keys()});
  ASSERT_TRUE(stage.ok()) << stage.status().to_string();
  EXPECT_EQ(shard_ranks_from_config(*stage, kStageRole).value(), 2);
  EXPECT_EQ(learner_from_config(*stage, kStageRole)->shard_ranks, 2);
}

TEST(FsdpSize, DividesTheWorkers) {
  const Config two = sharding_config({kFsdpConfig + "fsdp_size=2"});
  EXPECT_TRUE(check_fsdp_size(sharding_config({}), kActorRole, 3).ok());
  EXPECT_TRUE(check_fsdp_size(two, kActorRole, 2).ok());
  EXPECT_TRUE(check_fsdp_size(two, kActorRole, 6).ok());
  for (const int workers : {1, 3}) {
    const auto odd = check_fsdp_size(two, kActorRole, workers);
    EXPECT_EQ(odd.code(), runtime::ErrorCode::kInvalidArgument);
    EXPECT_NE(odd.message().find(kFsdpConfig + "fsdp_size: must be -1 or a divisor"),
              std::string::npos)
        << odd.message();
    EXPECT_NE(odd.message().find("which is " + std::to_string(workers)), std::string::npos)
        << odd.message();
  }
}

TEST(FsdpSize, OfOneIsLevelTwo) {
  const auto level = [](const std::string& size) {
    return learner_from_config(sharding_config({kFsdpConfig + "zero_level=3", kFsdpConfig + size}),
                               kActorRole)
        ->zero;
  };
  EXPECT_EQ(level("fsdp_size=1"), ZeroLevel::kGradients);
  EXPECT_EQ(level("fsdp_size=2"), ZeroLevel::kWeights);
}

TEST(FsdpSize, SaysWhatItDoes) {
  const std::string three = kFsdpConfig + "zero_level=3", size = kFsdpConfig + "fsdp_size=";
  EXPECT_EQ(fsdp_size_text(sharding_config({three, size + "2"}), kActorRole, 6),
            "actor_rollout_ref.actor: 3 groups of 2 workers; each group keeps the weights once");
  EXPECT_EQ(fsdp_size_text(sharding_config({three, size + "2"}), kActorRole, 2), "") << "one group";
  EXPECT_EQ(fsdp_size_text(sharding_config({three}), kActorRole, 4), "");
  EXPECT_EQ(fsdp_size_text(sharding_config({size + "2"}), kActorRole, 4),
            size + "2 has no effect with " + kFsdpConfig + "zero_level=auto, which is 0");
  for (const std::string level : {"0", "1", "2"}) {
    const std::string below = kFsdpConfig + "zero_level=" + level;
    EXPECT_EQ(fsdp_size_text(sharding_config({below, size + "2"}), kActorRole, 4),
              size + "2 has no effect with " + below);
  }
  EXPECT_EQ(fsdp_size_text(sharding_config({three, size + "1"}), kActorRole, 4),
            size + "1 makes " + three + " the same as 2");
}

TEST(FsdpSize, SaysWhatItDoesOfAReference) {
  const std::string section = std::string(kReferenceRole) + ".fsdp_config.";
  const std::string level = section + "zero_level=", size = section + "fsdp_size=";
  const auto text = [](std::vector<std::string> overrides) {
    return frozen_sharding_text(sharding_config(std::move(overrides)), kReferenceRole, 4);
  };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({level + "0"}), "");
  EXPECT_EQ(text({size + "2"}), size + "2 has no effect with " + level + "auto, which is 0");
  EXPECT_EQ(text({level + "0", size + "2"}), size + "2 has no effect with " + level + "0");
  EXPECT_EQ(text({level + "3"}), "actor_rollout_ref.ref: 4 workers keep the weights once");
  EXPECT_EQ(text({level + "3", size + "2"}),
            "actor_rollout_ref.ref: 2 groups of 2 workers; each group keeps the weights once");
  EXPECT_EQ(text({level + "3", size + "1"}), size + "1 makes " + level + "3 the same as 0");
}

// A stage's reference has groups by the engine's key.
TEST(FsdpSize, OfAStageIsItsReferencesToo) {
  const auto lines = [](const std::string& size, const std::string& level) {
    const auto config = Config::load(
        {.file = {},
         .overrides = {"engine.fsdp_size=" + size, "preference.reference_zero_level=" + level},
         .keys = &dpo_keys()});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::vector{fsdp_size_text(*config, kStageRole, 4),
                       frozen_sharding_text(*config, kStageReferenceRole, 4)};
  };
  EXPECT_EQ(lines("2", "0"),
            (std::vector<std::string>{
                "engine.fsdp_size=2 has no effect with engine.zero_level=auto, which is 0", ""}));
  EXPECT_EQ(
      lines("2", "3"),
      (std::vector<std::string>{
          "", "preference.reference: 2 groups of 2 workers; each group keeps the weights once"}));
  EXPECT_EQ(lines("1", "3"),
            (std::vector<std::string>{
                "", "engine.fsdp_size=1 makes preference.reference_zero_level=3 the same as 0"}));
}

}  // namespace
}  // namespace rl
