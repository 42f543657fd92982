#include "rl/run/memory_fit.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

constexpr std::int64_t kGb = 1'000'000'000;

RoleMemory role(const std::string& name, std::int64_t workers, std::int64_t gb) {
  return {.role = name, .workers = workers, .parts = {{"weights", gb * kGb}}};
}

NodeRoom room(double gb, double cpus = 2) {
  return {"node n" + std::to_string(static_cast<int>(gb)), gb * kGb, cpus};
}

std::string refusal(const std::vector<RoleMemory>& roles, const SlotOptions& slots,
                    const std::vector<NodeRoom>& nodes) {
  const runtime::Status status = check_memory_fits(roles, slots, nodes);
  EXPECT_TRUE(status.ok() || status.code() == runtime::ErrorCode::kResourceExhausted);
  return status.message();
}

TEST(MemoryFit, IsRefusedWithTheFigures) {
  const std::vector<RoleMemory> roles = {role("policy", 8, 3), role("reference", 8, 1)};
  const SlotOptions slots{.nodes = 1, .per_node = 8};
  const std::string why = refusal(roles, slots, {room(24)});
  for (const char* part :
       {"policy x 8 of 3.0 GB each", "reference x 8 of 1.0 GB each", "together 32 GB",
        "24 GB on node n24", "trainer.n_gpus_per_node=6", "starling start --resources"})
    EXPECT_NE(why.find(part), std::string::npos) << part << " in: " << why;
  EXPECT_EQ(refusal(roles, slots, {room(32)}), "");
  EXPECT_EQ(refusal(roles, {.nodes = 1, .per_node = 6}, {room(24)}), "");
}

TEST(MemoryFit, EachNodeHasItsShare) {
  const std::vector<RoleMemory> roles = {role("policy", 4, 5)};
  const SlotOptions slots{.nodes = 2, .per_node = 2};
  EXPECT_EQ(refusal(roles, slots, {room(10), room(10)}), "");
  EXPECT_EQ(refusal(roles, slots, {room(4), room(12), room(10)}), "") << "the third is not needed";
  const std::string why = refusal(roles, slots, {room(30), room(9)});
  EXPECT_NE(why.find("together 20 GB, up to 10 GB on a node"), std::string::npos) << why;
  EXPECT_EQ(refusal(roles, slots, {room(1)}), "") << "that there is one node too few is said there";
}

TEST(MemoryFit, WhatGeneratesAStepAheadHasNodesOfItsOwnWhereThereAreSome) {
  std::vector<RoleMemory> roles = {role("policy", 2, 5), role("rollout", 1, 4)};
  roles[1].devices_of_its_own = true;
  SlotOptions slots{.nodes = 1, .per_node = 2};
  slots.separate_nodes = slots.separate_per_node = 1;
  EXPECT_EQ(refusal(roles, slots, {room(4), room(10)}), "");
  EXPECT_NE(refusal(roles, slots, {room(3), room(10)}), "");
  EXPECT_NE(refusal(roles, slots, {room(13)}), "");
  EXPECT_EQ(refusal(roles, slots, {room(14)}), "");
}

TEST(MemoryFit, OneWorkerOfARoleWritesCheckpoints) {
  std::vector<RoleMemory> roles = {role("policy", 4, 2)};
  roles[0].parts.push_back({kCheckpointPart, 4 * kGb});
  const SlotOptions slots{.nodes = 1, .per_node = 4};
  EXPECT_EQ(refusal(roles, slots, {room(12)}), "");
  EXPECT_NE(refusal(roles, slots, {room(11)}), "");
}

TEST(MemoryFit, TheSumOfAllHasTheCopyThatIsWrittenOnce) {
  std::vector<RoleMemory> roles = {role("policy", 8, 2), role("reward", 2, 1)};
  EXPECT_EQ(memory_of_all(roles), 18 * kGb);
  roles[0].parts.push_back({kCheckpointPart, 3 * kGb});
  EXPECT_EQ(memory_of_all(roles), 21 * kGb);
}

TEST(MemoryFit, RolesTakeTurns) {
  std::vector<RoleMemory> roles = {role("policy", 1, 2), role("critic", 1, 2)};
  for (RoleMemory& one : roles) one.parts.push_back({"activations", 6 * kGb});
  const SlotOptions slots{.nodes = 1, .per_node = 1};
  EXPECT_EQ(refusal(roles, slots, {room(10)}), "");
  EXPECT_NE(refusal(roles, slots, {room(9)}), "");
  roles[1].concurrent = true;
  EXPECT_NE(refusal(roles, slots, {room(15)}), "");
  EXPECT_EQ(refusal(roles, slots, {room(16)}), "");
}

TEST(MemoryFit, WhatIsGatheredToGenerateIsNotThereInPasses) {
  std::vector<RoleMemory> roles = {role("policy", 2, 2), role("critic", 2, 2)};
  for (RoleMemory& one : roles) one.parts.push_back({"activations", 1 * kGb});
  roles[0].parts.push_back({kGatheredPart, 3 * kGb});
  EXPECT_EQ(roles[0].total(), 5 * kGb);
  const SlotOptions slots{.nodes = 1, .per_node = 2};
  EXPECT_EQ(slot_memory(roles, slots).node_bytes, 2 * (2 + 2 + 3) * kGb);
  roles[0].parts.push_back({"gathered units", 4 * kGb});
  EXPECT_EQ(slot_memory(roles, slots).node_bytes, 2 * (2 + 2 + 5) * kGb);
}

TEST(MemoryFit, OneNodeAloneHasTheCopyThatIsWritten) {
  std::vector<RoleMemory> roles = {role("policy", 3, 6)};
  roles[0].parts.push_back({kCheckpointPart, 4 * kGb});
  EXPECT_EQ(refusal(roles, {.nodes = 3, .per_node = 1}, {room(6), room(10), room(6)}), "");
}

TEST(MemoryFit, WhatIsReservedIsWhatIsJudged) {
  std::vector<RoleMemory> roles = {role("policy", 4, 2), role("critic", 4, 1),
                                   role("rollout", 2, 3)};
  roles[0].parts.push_back({"activations", 2 * kGb});
  roles[0].parts.push_back({kCheckpointPart, 4 * kGb});
  roles[1].parts.push_back({"activations", 1 * kGb});
  roles[2].devices_of_its_own = true;
  const SlotOptions slots{.nodes = 2, .per_node = 2, .separate_nodes = 1, .separate_per_node = 2};
  EXPECT_EQ(slot_memory(roles, slots),
            (SlotMemory{.node_bytes = 10 * kGb, .leader_bytes = 4 * kGb}));
  EXPECT_EQ(ahead_memory(roles, slots), (SlotMemory{.node_bytes = 6 * kGb, .leader_bytes = 0}));
  EXPECT_EQ(refusal(roles, slots, {room(6), room(14), room(10)}), "");
  EXPECT_NE(refusal(roles, slots, {room(6), room(13), room(13)}), "");
  EXPECT_NE(refusal(roles, slots, {room(5), room(14), room(10)}), "");
}

TEST(MemoryFit, TheCopyThatIsWrittenIsThePolicys) {
  std::vector<RoleMemory> roles = {role("policy", 1, 2), role("rollout", 1, 5)};
  roles[0].parts.push_back({kCheckpointPart, 2 * kGb});
  roles[1].devices_of_its_own = true;
  const SlotOptions slots{.nodes = 1, .per_node = 1, .separate_nodes = 1, .separate_per_node = 1};
  EXPECT_EQ(refusal(roles, slots, {room(5), room(4)}), "");
  EXPECT_NE(refusal(roles, slots, {room(7), room(3)}), "");
}

TEST(MemoryFit, WhatMayTakeMoreThanThereIsTakesTheLargestNodes) {
  const SlotOptions slots{.nodes = 2, .per_node = 1};
  const std::vector<NodeRoom> nodes = {room(4), room(24), room(9)};
  EXPECT_EQ(bounded_memory({.node_bytes = 30 * kGb, .leader_bytes = 40 * kGb}, slots, nodes),
            (SlotMemory{.node_bytes = 9 * kGb, .leader_bytes = 15 * kGb}));
  const SlotMemory fits{.node_bytes = 9 * kGb, .leader_bytes = 15 * kGb};
  EXPECT_EQ(bounded_memory(fits, slots, nodes), fits);
  EXPECT_EQ(bounded_memory(fits, slots, std::vector{room(4)}), fits) << "a node too few";
}

TEST(MemoryFit, ANodeThatDoesNotSayWhatItHasIsNotJudged) {
  EXPECT_EQ(refusal({role("policy", 1, 50)}, {}, {{"node a", 0, 2}}), "");
  EXPECT_EQ(refusal({role("policy", 1, 50)}, {}, {}), "");
}

TEST(MemoryFit, MoreWorkersThanCpusAreAWarning) {
  const std::vector<NodeRoom> nodes = {room(24, 2)};
  const auto warning = cpu_warning({.nodes = 1, .per_node = 8}, nodes);
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("8 workers are more than the CPUs of a node (2)"), std::string::npos)
      << *warning;
  EXPECT_FALSE(cpu_warning({.nodes = 1, .per_node = 2}, nodes));
  EXPECT_FALSE(cpu_warning({.nodes = 2, .per_node = 8}, nodes)) << "a node too few";
  SlotOptions both{.nodes = 1, .per_node = 2};
  both.separate_nodes = both.separate_per_node = 1;
  EXPECT_EQ(cpu_warning(both, nodes)->find("trainer.n_gpus_per_node, rollout.n_gpus_per_node: 3"),
            0u);
}

TEST(MemoryFit, WorkersThatAskForMoreCpusThanANodeHasAreAWarning) {
  SlotOptions slots{.nodes = 1, .per_node = 2};
  slots.cpus_per_worker = 2;
  EXPECT_FALSE(cpu_warning(slots, std::vector{room(24, 4)}));
  const auto warning = cpu_warning(slots, std::vector{room(24, 3)});
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("trainer.cpus_per_worker: the 2 worker(s) of a node ask for 4 CPUs, and "
                          "a node has 3"),
            std::string::npos)
      << *warning;
  NodeRoom alone = room(24, 3);
  alone.is_private = true;
  EXPECT_FALSE(cpu_warning(slots, std::vector{alone})) << "that is refused";
}

TEST(MemoryFit, NodesThatAreMissingAreNamed) {
  const SlotOptions slots{.nodes = 3};
  EXPECT_TRUE(check_enough_nodes(slots, {}).ok()) << "of a cluster that is not known";
  EXPECT_TRUE(check_enough_nodes(slots, std::vector{room(1), room(2), room(3)}).ok());
  const runtime::Status status = check_enough_nodes(slots, std::vector{room(1), room(2)});
  EXPECT_EQ(status.code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_NE(status.message().find("trainer.nnodes=3, but the cluster has 2 node(s)"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace rl
