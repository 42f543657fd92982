#include "rl/run/rl/run_fit.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/worker/team_keys.h"
#include "rl/worker/zero_level.h"
#include "tests/rl/plan/small_config.h"

namespace rl {
namespace {

using runtime::Result;

// A policy whose weights, gradients and moments are nearly all that it takes, on four workers.
class RunFitTest : public ::testing::Test {
 protected:
  RunFitTest() {
    model_.vocab_size = 1'000'000;  // 8 million weights, 32 MB
    trainer_.batch_prompts = trainer_.mini_batch_prompts = 4;
    trainer_.async_save = false;
    policy_.training.response_tokens_max = 6;
    policy_.positions_max = 40;
    slots_.per_node = 4;
  }

  static Config config(std::vector<std::string> overrides) {
    auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }
  Result<RunFit> fit(std::int64_t node_bytes) const {
    const NodeRoom node{"node a", static_cast<double>(node_bytes), 4};
    return fit_run(config_, trainer_, policy_, model_, {.prompt_tokens = 10}, slots_,
                   std::span(&node, 1));
  }
  // What a node must have at a level.
  std::int64_t need(int level) const {
    PolicyOptions policy = policy_;
    policy.learner.zero = static_cast<ZeroLevel>(level);
    const auto memory =
        run_memory(config_, trainer_, policy, model_, {.prompt_tokens = 10}, slots_);
    EXPECT_TRUE(memory.ok()) << memory.status().to_string();
    if (!memory.ok()) return 0;
    const SlotMemory node = slot_memory(memory->roles, slots_);
    return node.node_bytes + node.leader_bytes;
  }

  Config config_ = config({"actor_rollout_ref.model.path=toy"});
  TrainerOptions trainer_;
  PolicyOptions policy_;
  ModelConfig model_ = small_config();
  SlotOptions slots_;
};

TEST_F(RunFitTest, ALevelIsTakenOnlyWhereALowerOneDoesNotFit) {
  ASSERT_LT(need(1), need(0));
  const auto there = fit(need(0));
  ASSERT_TRUE(there.ok()) << there.status().to_string();
  EXPECT_TRUE(there->fits.ok());
  EXPECT_FALSE(there->zero.shards());
  EXPECT_EQ(there->policy_level, ZeroLevel::kNone);
  const auto less = fit(need(0) - 1);
  ASSERT_TRUE(less.ok()) << less.status().to_string();
  EXPECT_TRUE(less->fits.ok()) << less->fits.to_string();
  EXPECT_EQ(less->policy_level, ZeroLevel::kMoments);
  EXPECT_EQ(less->memory.roles.front().parts.at(2).name, "optimizer");
  EXPECT_EQ(less->memory.roles.front().parts.at(2).bytes,
            2 * 4 * weight_elements(model_) / slots_.per_node);
  EXPECT_EQ(
      zero_level_from_config(less->zero.settled(config_), kActorRole).value_or(ZeroLevel::kNone),
      ZeroLevel::kMoments);
}

TEST_F(RunFitTest, WhereNothingFitsTheFiguresAreThoseOfLevelZero) {
  const auto refused = fit(1000);
  ASSERT_TRUE(refused.ok()) << refused.status().to_string();
  EXPECT_EQ(refused->fits.code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_TRUE(refused->fits.message().ends_with("zero_level=auto: nor do they with 3"))
      << refused->fits.message();
  EXPECT_EQ(refused->policy_level, ZeroLevel::kNone);
  EXPECT_EQ(refused->zero.text(), "");
}

// Where groups of two have all weights, level 3 needs more than with one group of four.
TEST_F(RunFitTest, AutoCountsWhatAGroupKeeps) {
  model_ = small_config();
  model_.layers = 1000;  // of which two are there at a time
  policy_.learner.shard_ranks = 2;
  const std::int64_t twice = need(3);
  policy_.learner.shard_ranks = 0;
  const std::int64_t once = need(3);
  ASSERT_EQ(twice - once, 4 * 4 * weight_elements(model_) / 4);
  EXPECT_TRUE(fit(once)->fits.ok());
  policy_.learner.shard_ranks = 2;
  EXPECT_FALSE(fit(once)->fits.ok());
  const auto there = fit(twice);
  EXPECT_TRUE(there->fits.ok());
  EXPECT_EQ(there->policy_level, ZeroLevel::kWeights);
}

// With the policy at 1 and its reference whole the run is too large, and not with a part of each.
TEST_F(RunFitTest, AutoKeepsAReferenceOnceBeforeGradients) {
  model_ = small_config();
  model_.layers = 1000;
  trainer_.kl_loss = true;
  const std::string path = "actor_rollout_ref.model.path=toy";
  const std::string level = "actor_rollout_ref.ref.fsdp_config.zero_level";
  const std::int64_t whole = need(1);
  config_ = config({path, level + "=3"});
  const std::int64_t once = need(1);
  ASSERT_LT(once, whole);
  config_ = config({path});
  const auto there = fit(once);
  ASSERT_TRUE(there.ok()) << there.status().to_string();
  EXPECT_TRUE(there->fits.ok()) << there->fits.to_string();
  EXPECT_EQ(there->policy_level, ZeroLevel::kMoments);
  EXPECT_NE(there->zero.text().find(level + "=auto is 3: with 1 the run"), std::string::npos)
      << there->zero.text();
  EXPECT_EQ(there->zero.settled(config_).get_int(level).value_or(0), 3) << "workers read it";
}

TEST_F(RunFitTest, AGroupMustDivideTheWorkers) {
  const std::string key = "actor_rollout_ref.actor.fsdp_config.fsdp_size";
  config_ = config({"actor_rollout_ref.model.path=toy", key + "=3"});
  const auto refused = fit(0);
  EXPECT_EQ(refused.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find(key + ": must be"), std::string::npos)
      << refused.status().message();
}

// Before it is known what models there are.
TEST_F(RunFitTest, GroupsAndTeamsDivideTheWorkersOfEachRole) {
  trainer_.estimator = &advantage_estimator("gae");
  trainer_.kl_loss = true;
  const auto complaint = [&](const std::string& key, int number) {
    return check_groups(config({key + "=" + std::to_string(number)}), trainer_, slots_).message();
  };
  for (const std::string key :
       {"actor_rollout_ref.actor.fsdp_config.fsdp_size", "critic.fsdp.fsdp_size",
        "actor_rollout_ref.ref.fsdp_config.fsdp_size", "critic.ulysses_sequence_parallel_size",
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size", kTensorRanksKey}) {
    EXPECT_EQ(complaint(key, 2), "");
    EXPECT_EQ(complaint(key, 3).find(key + ": must be "), 0u) << complaint(key, 3);
  }
}

TEST_F(RunFitTest, ANodeThatDoesNotSayWhatItHasChangesNothing) {
  const auto unknown = fit(0);
  ASSERT_TRUE(unknown.ok()) << unknown.status().to_string();
  EXPECT_TRUE(unknown->fits.ok());
  EXPECT_FALSE(unknown->zero.shards());
}

TEST_F(RunFitTest, RolesTakeWhatTheirKeysAllow) {
  const auto allowed = [&](std::vector<std::string> overrides, int level) {
    const Config with = config(std::move(overrides));
    nlohmann::ordered_json tree = with.to_json();
    tree["actor_rollout_ref"]["actor"]["fsdp_config"]["zero_level"] = level;
    return zero_roles(config_, trainer_, slots_).front().allows(with.with_tree(std::move(tree)));
  };
  const std::string model = "actor_rollout_ref.model.path=toy";
  EXPECT_TRUE(allowed({model}, 3));
  EXPECT_TRUE(allowed({model, "actor_rollout_ref.actor.optim.optimizer=Muon"}, 3));
  EXPECT_TRUE(allowed({model, "actor_rollout_ref.hybrid_engine=false"}, 2));
  EXPECT_FALSE(allowed({model, "actor_rollout_ref.hybrid_engine=false"}, 3));
  EXPECT_EQ(zero_roles(config_, trainer_, slots_).size(), 1u);
  trainer_.estimator = &advantage_estimator("gae");
  EXPECT_EQ(zero_roles(config_, trainer_, slots_).back().role, kCriticRole);
}

}  // namespace
}  // namespace rl
