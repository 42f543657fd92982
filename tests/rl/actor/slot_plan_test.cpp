#include "rl/actor/slot_plan.h"

#include <gtest/gtest.h>

#include "runtime/control/cluster_view.h"

namespace rl {
namespace {

using runtime::ResourceMap;
using runtime::Result;

constexpr std::int64_t kGb = 1'000'000'000;

NodeRoom room(const std::string& name, double cpus, double gb) {
  return {.name = name, .memory_bytes = gb * kGb, .cpus = cpus, .is_private = false};
}

SlotOptions wanting(std::int64_t nodes, std::int64_t per_node, std::int64_t gb,
                    std::int64_t leader_gb = 0) {
  SlotOptions options{.nodes = nodes, .per_node = per_node};
  options.memory = {.node_bytes = gb * kGb, .leader_bytes = leader_gb * kGb};
  return options;
}

ResourceMap bundle(double cpus, double gb) { return {{"CPU", cpus}, {"memory", gb * kGb}}; }

void expect_refused(const SlotOptions& options, const std::vector<NodeRoom>& nodes,
                    std::initializer_list<const char*> parts) {
  const Result<SlotPlan> plan = plan_slots(options, nodes);
  ASSERT_EQ(plan.status().code(), runtime::ErrorCode::kResourceExhausted);
  for (const char* part : parts)
    EXPECT_NE(plan.status().message().find(part), std::string::npos)
        << part << " in: " << plan.status().message();
}

TEST(SlotPlan, BundlesTakeTheMemoryOfTheirWorkersAndTheFirstTheLeaders) {
  const std::vector<NodeRoom> nodes = {room("a", 4, 20), room("b", 4, 30)};
  const Result<SlotPlan> one = plan_slots(wanting(1, 2, 6, 3), nodes);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->strategy, runtime::GroupStrategy::kPack);
  EXPECT_EQ(one->cpus, 2);
  EXPECT_EQ(one->bundles, (std::vector{bundle(4, 9)}));
  const Result<SlotPlan> two = plan_slots(wanting(2, 2, 6, 3), nodes);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->strategy, runtime::GroupStrategy::kStrictSpread);
  EXPECT_EQ(two->bundles, (std::vector{bundle(4, 9), bundle(4, 6)}));
}

TEST(SlotPlan, WhatIsNotKnownIsNotReserved) {
  const ResourceMap cpus{{"CPU", 4}};
  const std::vector<NodeRoom> nodes = {room("a", 4, 20)};
  EXPECT_EQ(plan_slots(wanting(1, 2, 0, 3), nodes)->bundles, (std::vector{cpus}));
  // A node that does not say what it has would never get a bundle that asks for memory.
  const std::vector<NodeRoom> silent = {room("a", 4, 20), room("b", 2, 0)};
  EXPECT_EQ(plan_slots(wanting(1, 2, 50), silent)->bundles, (std::vector{cpus}));
  SlotOptions on_gpus = wanting(1, 2, 50);
  on_gpus.device = "cuda";
  const ResourceMap gpu{{"CPU", 2}, {"GPU", 1}};
  EXPECT_EQ(plan_slots(on_gpus, nodes)->bundles, (std::vector{gpu, gpu}));
}

TEST(SlotPlan, CpusAreSharedOfTheNodesThatHoldTheMemory) {
  const std::vector<NodeRoom> nodes = {room("a", 16, 8), room("b", 4, 64), room("c", 8, 32)};
  EXPECT_EQ(plan_slots(wanting(1, 2, 0), nodes)->cpus, 8);
  EXPECT_EQ(plan_slots(wanting(1, 2, 6), nodes)->cpus, 8);
  EXPECT_EQ(plan_slots(wanting(1, 2, 20), nodes)->cpus, 4);
  EXPECT_EQ(plan_slots(wanting(1, 2, 20, 20), nodes)->cpus, 2);
  EXPECT_EQ(plan_slots(wanting(2, 2, 6, 3), nodes)->cpus, 4) << "the leader's on c, the other on a";
  EXPECT_EQ(plan_slots(wanting(2, 2, 9), nodes)->cpus, 2);
}

TEST(SlotPlan, MemoryThatNoNodesHaveIsRefused) {
  const std::vector<NodeRoom> nodes = {room("node a", 16, 8), room("node b", 4, 64)};
  expect_refused(wanting(1, 2, 60, 5), nodes,
                 {"trainer.n_gpus_per_node=2", "take 65 GB of memory", "no node has as much",
                  "4 CPUs with 64 GB on node b, 16 CPUs with 8.0 GB on node a"});
  expect_refused(wanting(2, 2, 9), nodes, {"fewer than 2 nodes have as much"});
  SlotOptions rollouts = wanting(1, 3, 65);
  rollouts.nodes_key = "rollout.nnodes";
  expect_refused(rollouts, nodes, {"rollout.n_gpus_per_node=3"});
  expect_refused(wanting(3, 1, 1), nodes, {"trainer.nnodes=3, but the cluster has 2 node(s)"});
}

TEST(SlotPlan, MemoryAndCpusOfDifferentNodesAreRefused) {
  const std::vector<NodeRoom> nodes = {room("node a", 16, 8), room("node b", 4, 64)};
  SlotOptions options = wanting(1, 2, 20);
  options.cpus_per_worker = 2;
  EXPECT_EQ(plan_slots(options, nodes)->bundles, (std::vector{bundle(4, 20)}));
  options.cpus_per_worker = 3;
  expect_refused(
      options, nodes,
      {"trainer.cpus_per_worker=3", "take 6 CPUs and 20 GB of memory", "no node has both",
       "set trainer.cpus_per_worker to at most 2", "(trainer.n_gpus_per_node)"});
  options.cpus_per_worker = 9;
  EXPECT_TRUE(plan_slots(options, nodes).ok()) << "a node with 18 CPUs may come";
}

TEST(SlotPlan, APrivateClusterRefusesCpusThatItNeverHas) {
  std::vector<NodeRoom> nodes = {room("this machine", 4, 8)};
  SlotOptions options = wanting(1, 2, 1);
  options.cpus_per_worker = 3;
  EXPECT_TRUE(plan_slots(options, nodes).ok());
  nodes[0].is_private = true;
  expect_refused(options, nodes,
                 {"trainer.cpus_per_worker=3: the 2 worker(s) of a node ask for 6 CPUs", "has 4",
                  "at most 2"});
  options.cpus_per_worker = 2;
  EXPECT_TRUE(plan_slots(options, nodes).ok());
  // Those that generate a step ahead are on the same node.
  options.separate_nodes = options.separate_per_node = 1;
  expect_refused(options, nodes, {"3 worker(s) of a node ask for 6 CPUs", "at most 1"});
  options = wanting(1, 8, 1);
  EXPECT_EQ(plan_slots(options, nodes)->cpus, 0.5) << "more workers than CPUs take turns";
  options.cpus_per_worker = 1;
  expect_refused(options, nodes, {"leave trainer.cpus_per_worker out"});
}

TEST(SlotPlan, KnowsWhatNodesSay) {
  runtime::NodeInfo node;
  node.address = "10.0.0.2:7000";
  node.node = runtime::NodeId::random();
  node.resources = {{"CPU", 4}, {"memory", 5e9}};
  runtime::NodeInfo without_cpus = node, dead = node;
  without_cpus.resources.erase("CPU");
  dead.alive = false;
  const std::vector<NodeRoom> rooms = node_rooms(std::vector{node, without_cpus, dead});
  ASSERT_EQ(rooms.size(), 1u);
  EXPECT_EQ(rooms[0].memory_bytes, 5e9);
  EXPECT_EQ(rooms[0].cpus, 4);
  EXPECT_FALSE(rooms[0].is_private);
  EXPECT_EQ(rooms[0].name, "node " + node.node.short_hex() + " at 10.0.0.2:7000");
  node.labels[runtime::kPrivateLabel] = "true";
  EXPECT_TRUE(node_rooms(std::vector{node})[0].is_private);
}

}  // namespace
}  // namespace rl
