// The workers that a run starts, their slots and their options, over a cluster that is a fake.
#include "rl/run/rl/role_starter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/optim/learner.h"
#include "tests/rl/run/rl/fake_spawner.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

class RoleStarterTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  RoleStarterTest() {
    options_.folder = "/run";
    models_.policy = "/models/policy";
    models_.critic = "/models/critic";
    models_.reward_config = config({"data.seed=7"});
  }
  static Config config(std::vector<std::string> overrides) {
    auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }
  static Config read(const WorkerSpec& spec) {
    auto config = Config::deserialize(spec.config);
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }
  Status start() {
    starter_.emplace(spawner_, config_, options_, models_,
                     SlotOptions{.nodes = 2, .per_node = 4, .device = "cuda"});
    return starter_->start(roles_, "1e-6");
  }
  void have_rollouts() { options_.rollout_workers = {.nodes = 3, .per_node = 2}; }
  void have_teachers() {
    models_.teachers.resize(2);
    models_.teachers[0] = {.named = {.name = "maths", .model_key = "", .rows = "gsm8k"},
                           .model = "/models/maths"};
    models_.teachers[1] = {.named = {.name = "code", .model_key = "", .rows = "mbpp"},
                           .model = "/models/code"};
  }

  Config config_ = config({"actor_rollout_ref.rollout.temperature=0.7"});
  TrainerOptions options_;
  RunModels models_;
  FakeSpawner spawner_;
  Roles roles_;
  std::optional<RoleStarter> starter_;
};

TEST_F(RoleStarterTest, ARunOfGrpoHasAPolicyAndAReward) {
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(spawner_.groups(), (Names{"policy-11111", "reward-11111"}));
  EXPECT_EQ(starter_->weights_name(), "weights-" + std::string(32, '1'));
  const auto& policy = spawner_.of("policy");
  EXPECT_EQ(policy.actors, "policy");
  EXPECT_TRUE(policy.reserves) << "the slots' CPUs are its own";
  EXPECT_EQ(policy.slots.size(), 8);
  EXPECT_EQ(policy.slots.models, 1);
  EXPECT_EQ(policy.spec.config, config_.serialize());
  EXPECT_EQ(policy.spec.model, "/models/policy");
  EXPECT_EQ(policy.spec.adapter, "");
  EXPECT_EQ(policy.spec.group, "policy-" + std::string(32, '1'));
  EXPECT_FALSE(policy.spec.generates_only);
  const auto& reward = spawner_.of("reward");
  EXPECT_EQ(reward.actors, "reward");
  EXPECT_FALSE(reward.reserves);
  EXPECT_EQ(reward.slots.group, policy.slots.group);
  EXPECT_EQ(reward.slots.models, 0) << "rules take nothing of a GPU";
  EXPECT_EQ(reward.spec.config, models_.reward_config.serialize());
  EXPECT_EQ(reward.spec.model, "/models/policy") << "whose tokens it reads";
  EXPECT_EQ(spawner_.nothings, 1);
}

TEST_F(RoleStarterTest, RolesWithModelsShareTheSlots) {
  options_.estimator = &advantage_estimator("gae");
  options_.kl_loss = true;
  models_.reward_config =
      config({"reward.mixture=[{rule: gsm8k, weight: 1}, {model: /models/judge, weight: 1}]"});
  have_teachers();
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(spawner_.groups(),
            (Names{"critic-11111", "policy-11111", "reward-11111", "teacher_code", "teacher_math"}))
      << "the reference waits for the warm start";
  ASSERT_EQ(spawner_.reserved.size(), 1u);
  EXPECT_EQ(spawner_.reserved[0].models, 6);
  for (const auto& one : spawner_.spawned) {
    EXPECT_EQ(one.slots.models, 6) << one.spec.group;
    EXPECT_EQ(one.reserves, one.actors == "policy") << one.spec.group;
  }
  EXPECT_EQ(spawner_.of("critic").actors, "critic");
  EXPECT_EQ(spawner_.of("critic").spec.model, "/models/critic");
  EXPECT_EQ(spawner_.of("critic").spec.model_name, "/models/critic");
}

TEST_F(RoleStarterTest, ACriticOnThePolicyIsNoRole) {
  options_.estimator = &advantage_estimator("gae");
  options_.shared_critic = true;
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(spawner_.groups(), (Names{"policy-11111", "reward-11111"}));
  EXPECT_EQ(spawner_.reserved[0].models, 1);
}

TEST_F(RoleStarterTest, TeachersScoreAtTheirOwnTemperature) {
  have_teachers();
  ASSERT_TRUE(start().ok());
  const std::string key = "actor_rollout_ref.rollout.temperature";
  for (const char* name : {"maths", "code"}) {
    const auto& teacher = spawner_.of(std::string("teacher_") + name);
    EXPECT_EQ(teacher.actors, "reference");
    EXPECT_EQ(teacher.spec.model, std::string("/models/") + name);
    EXPECT_EQ(*read(teacher.spec).get_float(key), 1.0);
  }
  EXPECT_EQ(*read(spawner_.of("policy").spec).get_float(key), 0.7);
  ASSERT_EQ(roles_.teachers.size(), 2u);
  EXPECT_EQ(roles_.teachers[1].role(), "teacher_code");
}

TEST_F(RoleStarterTest, ASingleTeacherHasNoNameInItsGroup) {
  models_.teachers.push_back(
      {.named = {.name = "maths", .model_key = "", .rows = ""}, .model = "/models/maths"});
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(spawner_.of("teacher").spec.group, "teacher-" + std::string(32, '1'));
}

TEST_F(RoleStarterTest, RolloutWorkersHaveSlotsNextToThePolicys) {
  have_rollouts();
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(spawner_.groups(), (Names{"policy-11111", "reward-11111", "rollout-2222"}));
  ASSERT_EQ(spawner_.reserved.size(), 2u);
  const SlotOptions &of_policy = spawner_.reserved[0], &of_rollouts = spawner_.reserved[1];
  EXPECT_EQ(of_policy.nodes, 2);
  EXPECT_EQ(of_policy.separate_nodes, 3);
  EXPECT_EQ(of_policy.separate_per_node, 2);
  EXPECT_EQ(of_policy.nodes_key, "trainer.nnodes");
  EXPECT_EQ(of_rollouts.nodes, 3);
  EXPECT_EQ(of_rollouts.per_node, 2);
  EXPECT_EQ(of_rollouts.separate_nodes, 2);
  EXPECT_EQ(of_rollouts.separate_per_node, 4);
  EXPECT_EQ(of_rollouts.device, "cuda");
  EXPECT_EQ(of_rollouts.nodes_key, "rollout.nnodes");
  EXPECT_EQ(of_rollouts.models, 1) << "nothing else is in their slots";
  const auto& rollout = spawner_.of("rollout");
  EXPECT_EQ(rollout.actors, "policy");
  EXPECT_TRUE(rollout.reserves);
  EXPECT_EQ(rollout.slots.size(), 6);
  EXPECT_TRUE(rollout.spec.generates_only);
  EXPECT_EQ(rollout.spec.model, "/models/policy");
  EXPECT_EQ(starter_->weights_name(), "weights-" + std::string(32, '1')) << "the policy's";
}

TEST_F(RoleStarterTest, WhatTakesMoreMemoryOfANodeChoosesItFirst) {
  have_rollouts();
  std::vector<RoleMemory> roles = {
      {.role = "policy", .parts = {{"weights", 10}, {kCheckpointPart, 30}}},
      {.role = "rollout", .parts = {{"weights", 36}}, .devices_of_its_own = true}};
  for (const std::int64_t weights : {36, 30}) {
    roles[1].parts[0].bytes = weights;
    starter_.emplace(spawner_, config_, options_, models_, SlotOptions{.nodes = 2, .per_node = 4});
    starter_->set_memory(roles);
    spawner_.reserved.clear();
    ASSERT_TRUE(starter_->start(roles_, "1e-6").ok());
    ASSERT_EQ(spawner_.reserved.size(), 2u);
    const bool policy_first = weights == 30;
    const SlotOptions& policy = spawner_.reserved[policy_first ? 0 : 1];
    const SlotOptions& rollouts = spawner_.reserved[policy_first ? 1 : 0];
    EXPECT_EQ(policy.nodes_key, "trainer.nnodes");
    EXPECT_EQ(policy.memory, (SlotMemory{.node_bytes = 40, .leader_bytes = 30}));
    EXPECT_EQ(rollouts.nodes_key, "rollout.nnodes");
    EXPECT_EQ(rollouts.memory, (SlotMemory{.node_bytes = 2 * weights, .leader_bytes = 0}));
  }
}

TEST_F(RoleStarterTest, AnAdapterGoesWithThePolicy) {
  models_.adapter = "/adapters/a";
  have_rollouts();
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(spawner_.of("policy").spec.adapter, "/adapters/a");
  EXPECT_EQ(spawner_.of("rollout").spec.adapter, "/adapters/a");
  EXPECT_EQ(spawner_.of("reward").spec.adapter, "");
}

// What an adapter says that it was made for has to mean something on other machines.
TEST_F(RoleStarterTest, AModelOfTheHubKeepsItsName) {
  const support::TemporaryFolder here;
  const std::string key = "actor_rollout_ref.model.path=";
  for (const auto& [given, name] :
       std::map<std::string, std::string>{{"org/none-such", "org/none-such"},
                                          {here.path().string(), "/models/policy"},
                                          {"toy", "/models/policy"}}) {
    config_ = config({key + given});
    spawner_.spawned.clear();
    spawner_.reserved.clear();
    ASSERT_TRUE(start().ok());
    EXPECT_EQ(spawner_.of("policy").spec.model_name, name);
    EXPECT_EQ(spawner_.of("policy").spec.model, "/models/policy");
    EXPECT_EQ(spawner_.of("reward").spec.model_name, "/models/policy");
  }
}

TEST_F(RoleStarterTest, ARewardSaysWhetherItCanBeginEarly) {
  ASSERT_TRUE(start().ok());
  EXPECT_FALSE(roles_.reward_prepares);
  spawner_.can_prepare = true;
  ASSERT_TRUE(start().ok());
  EXPECT_TRUE(roles_.reward_prepares);
  const Status died = runtime::actor_died("reward 0 died");
  spawner_.can_prepare = died;
  EXPECT_EQ(start(), died);
}

TEST_F(RoleStarterTest, TheReferenceIsThePolicyAsItWasGiven) {
  options_.kl_loss = true;
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starter_->start_reference(roles_).ok());
  const auto& reference = spawner_.of("reference");
  EXPECT_EQ(reference.actors, "reference");
  EXPECT_FALSE(reference.reserves);
  EXPECT_EQ(reference.slots.group, spawner_.of("policy").slots.group);
  EXPECT_EQ(reference.slots.models, 2);
  EXPECT_EQ(reference.spec.model, "/models/policy");
  EXPECT_EQ(reference.spec.adapter, "");
  EXPECT_EQ(reference.spec.config, config_.serialize());
}

TEST_F(RoleStarterTest, AWarmStartMakesTheReference) {
  options_.warm_start.steps = 5;
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starter_->start_reference(roles_).ok());
  const fs::path folder = fs::path("/run") / kWarmStartFolder;
  EXPECT_EQ(spawner_.of("reference").spec.model, (folder / kModelFolder).string());
  EXPECT_EQ(spawner_.of("reference").spec.adapter, "");

  // Of an adapter only that is new.
  models_.adapter = "/adapters/a";
  spawner_.spawned.clear();
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starter_->start_reference(roles_).ok());
  EXPECT_EQ(spawner_.of("reference").spec.model, "/models/policy");
  EXPECT_EQ(spawner_.of("reference").spec.adapter, (folder / kAdapterFolder).string());
}

TEST_F(RoleStarterTest, AnAdapterThatIsGivenIsTheReferences) {
  models_.adapter = "/adapters/a";
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starter_->start_reference(roles_).ok());
  EXPECT_EQ(spawner_.of("reference").spec.adapter, "/adapters/a");
  models_.adapter = fs::path();  // a new one changes nothing yet
  spawner_.spawned.clear();
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starter_->start_reference(roles_).ok());
  EXPECT_EQ(spawner_.of("reference").spec.adapter, "");
  spawner_.fails = {{"reference", runtime::resource_exhausted("no memory")}};
  EXPECT_EQ(starter_->start_reference(roles_), runtime::resource_exhausted("no memory"));
}

TEST_F(RoleStarterTest, WithoutSlotsNothingIsStarted) {
  const Status full = runtime::resource_exhausted("trainer.nnodes=2, and there is 1");
  spawner_.fails = {{"trainer.nnodes", full}};
  EXPECT_EQ(start(), full);
  EXPECT_TRUE(spawner_.spawned.empty());
  EXPECT_EQ(spawner_.nothings, 0);
}

TEST_F(RoleStarterTest, RolloutWorkersWithoutSlotsAreToldAsThat) {
  have_rollouts();
  spawner_.fails = {{"rollout.nnodes", runtime::resource_exhausted("3 nodes, and there are 2")}};
  EXPECT_EQ(start(),
            runtime::resource_exhausted("workers that generate samples: 3 nodes, and there are 2"));
}

TEST_F(RoleStarterTest, ARoleThatFailsKeepsTheNextOnesFromStarting) {
  options_.estimator = &advantage_estimator("gae");
  have_rollouts();
  have_teachers();
  const Status full = runtime::resource_exhausted("no memory");
  const Names all = {"policy", "rollout", "critic", "teacher_maths", "teacher_code"};
  for (std::size_t failing = 0; failing < all.size(); ++failing) {
    spawner_.spawned.clear();
    spawner_.reserved.clear();
    spawner_.fails = {{all[failing], full}};
    EXPECT_EQ(start(), full) << all[failing];
    EXPECT_EQ(spawner_.spawned.size(), failing + 2) << all[failing] << ", and the reward";
    EXPECT_EQ(spawner_.of("reward").actors, "reward");
  }
  EXPECT_EQ(spawner_.nothings, 0);
}

TEST_F(RoleStarterTest, ARewardThatFailsIsToldUnlessAnotherRoleDid) {
  const Status broken = runtime::invalid_argument("reward.custom_reward_function.path");
  spawner_.fails = {{"reward", broken}};
  EXPECT_EQ(start(), broken);
  const Status full = runtime::resource_exhausted("no memory");
  spawner_.fails["policy"] = full;
  EXPECT_EQ(start(), full);
}

TEST_F(RoleStarterTest, AFullStoreIsTold) {
  const Status full = runtime::resource_exhausted("the store is full");
  spawner_.fails = {{"nothing", full}};
  EXPECT_EQ(start(), full);
}

}  // namespace
}  // namespace rl
