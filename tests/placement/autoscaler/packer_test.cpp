#include "placement/autoscaler/packer.h"

#include <gtest/gtest.h>

namespace placement {
namespace {

using runtime::GroupStrategy;

Resources amounts(const runtime::ResourceMap& map) { return *Resources::from_map(map); }

class PackerTest : public ::testing::Test {
 protected:
  PackerTest() {
    input_.room = input_.nodes_max = 10;
    offer("cpu", {{"CPU", 4}});
    offer("gpu", {{"CPU", 8}, {"GPU", 4}}, {{"zone", "b"}});
  }
  TypeOffer& offer(const std::string& name, const runtime::ResourceMap& resources,
                   runtime::Labels labels = {}) {
    TypeOffer offer;
    offer.type.name = name;
    offer.type.resources = amounts(resources);
    offer.type.labels = std::move(labels);
    offer.type.max_nodes = offer.room = 5;
    input_.offers.push_back(offer);
    return input_.offers.back();
  }
  void node(const runtime::ResourceMap& available, runtime::Labels labels = {}) {
    input_.pool.push_back({amounts(available), std::move(labels)});
  }
  void actors(std::uint64_t count, const runtime::ResourceMap& resources,
              runtime::Labels labels = {}) {
    demand_.actors.push_back({resources, std::move(labels), count, "actor A"});
  }
  void group(GroupStrategy strategy, std::vector<runtime::ResourceMap> bundles,
             std::uint64_t count = 1) {
    runtime::GroupShape shape;
    shape.spec.group = runtime::GroupId::random();
    shape.spec.strategy = strategy;
    shape.spec.bundles = std::move(bundles);
    shape.count = count;
    demand_.groups.push_back(shape);
  }
  /// Names of the types to be added.
  std::string added() {
    result_ = pack(demand_, input_);
    std::string names;
    for (const NewNode& node : result_.add)
      names += (names.empty() ? "" : " ") + input_.offers[node.offer].type.name;
    return names;
  }
  const DemandReport& report(std::size_t i = 0) { return result_.demand.at(i); }

  PackInput input_;
  runtime::Demand demand_;
  PackResult result_;
};

TEST_F(PackerTest, AddsNothingForWhatFits) {
  node({{"CPU", 2}});
  actors(2, {{"CPU", 1}});
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().unmet, 0u);
  EXPECT_TRUE(result_.used[0]);
}

TEST_F(PackerTest, AddsAsManyAsTheRestNeeds) {
  node({{"CPU", 2}});
  actors(7, {{"CPU", 1}});  // 2 on what is there, 5 on two new ones
  EXPECT_EQ(added(), "cpu cpu");
  EXPECT_EQ(report().unmet, 0u);
}

TEST_F(PackerTest, TakesNoGpuNodeForWhoAsksForNone) {
  input_.offers[0].room = 1;
  actors(4, {{"CPU", 4}});
  EXPECT_EQ(added(), "cpu gpu gpu");  // only once there is nothing else
  demand_.actors.clear();
  actors(1, {{"GPU", 1}});
  EXPECT_EQ(added(), "gpu");
}

TEST_F(PackerTest, TakesTheTypeThatIsFilledBest) {
  offer("small", {{"CPU", 1}});
  actors(1, {{"CPU", 1}});
  EXPECT_EQ(added(), "small");
  demand_.actors[0].count = 9;
  EXPECT_EQ(added(), "cpu cpu small");  // the first where several are as good
}

TEST_F(PackerTest, HardOnesGoFirst) {
  input_.room = 1;
  actors(8, {{"CPU", 1}});
  actors(1, {{"GPU", 2}});
  EXPECT_EQ(added(), "gpu");  // which takes the others too
  EXPECT_EQ(report(0).unmet, 0u);
  EXPECT_EQ(report(1).unmet, 0u);
}

TEST_F(PackerTest, KeepsToLabels) {
  node({{"CPU", 100}});
  node({{"CPU", 1}}, {{"zone", "b"}});
  actors(1, {{"CPU", 2}}, {{"zone", "b"}});
  EXPECT_EQ(added(), "gpu");
  demand_.actors.clear();
  actors(1, {{"CPU", 1}}, {{"zone", "c"}});
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().unmet, 1u);
  EXPECT_NE(report().reason.find("lacks the label zone=c"), std::string::npos) << report().reason;
  demand_.actors.clear();
  actors(3, {}, {{"zone", "b"}});  // nothing but the label
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().unmet, 0u);
}

TEST_F(PackerTest, SaysWhatNoTypeHas) {
  actors(2, {{"GPU", 8}, {"CPU", 1}});
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().unmet, 2u);
  EXPECT_NE(report().reason.find(
                "no node type has CPU 1, GPU 8; the nearest, 'gpu', lacks GPU 8 (has 4)"),
            std::string::npos)
      << report().reason;
}

TEST_F(PackerTest, SaysWhichLimitIsReached) {
  input_.room = 1;
  actors(3, {{"CPU", 4}});
  EXPECT_EQ(added(), "cpu");
  EXPECT_EQ(report().unmet, 2u);
  EXPECT_EQ(report().reason, "max_nodes, 10, is reached");
  input_.room = 10;
  input_.offers[0].room = 0;
  demand_.actors.clear();
  actors(1, {{"CPU", 4}}, {{std::string(kNodeTypeLabel), "cpu"}});
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().reason, "node type 'cpu' has its max_nodes, 5");
  input_.offers[0].room = 1;
  input_.offers[0].on_demand_closed = "it has failed";
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().reason, "it has failed");
}

TEST_F(PackerTest, StrictSpreadGetsANodeForEachBundleThatLacksOne) {
  node({{"CPU", 4}});
  group(GroupStrategy::kStrictSpread, {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}});
  EXPECT_EQ(added(), "cpu cpu");
  EXPECT_EQ(report().unmet, 0u);
}

TEST_F(PackerTest, StrictSpreadUsesWhatIsThereForWhatFitsNowhereElse) {
  // The GPU node could take either bundle; the one for GPUs has to have it.
  node({{"CPU", 4}, {"GPU", 1}});
  input_.offers[1].room = 0;
  group(GroupStrategy::kStrictSpread, {{{"CPU", 1}}, {{"CPU", 1}}, {{"GPU", 1}}});
  EXPECT_EQ(added(), "cpu cpu");
  EXPECT_EQ(report().unmet, 0u);
}

TEST_F(PackerTest, StrictPackNeedsOneNode) {
  node({{"CPU", 3}});
  node({{"CPU", 3}});
  group(GroupStrategy::kStrictPack, {{{"CPU", 2}}, {{"CPU", 2}}});
  EXPECT_EQ(added(), "cpu");
  demand_.groups.clear();
  group(GroupStrategy::kStrictPack, {{{"CPU", 5}}, {{"CPU", 5}}});
  EXPECT_EQ(added(), "");
  EXPECT_NE(report().reason.find("one node together: no node type has CPU 10"), std::string::npos)
      << report().reason;
}

TEST_F(PackerTest, PackFillsWhatIsThereAndThenNewNodes) {
  node({{"CPU", 3}});
  group(GroupStrategy::kPack, std::vector<runtime::ResourceMap>(10, {{"CPU", 1}}));
  EXPECT_EQ(added(), "cpu cpu");
  EXPECT_EQ(report().unmet, 0u);
}

TEST_F(PackerTest, SpreadAsksForNoMoreNodesThanItNeeds) {
  node({{"CPU", 3}});
  group(GroupStrategy::kSpread, std::vector<runtime::ResourceMap>(4, {{"CPU", 1}}));
  EXPECT_EQ(added(), "cpu");
  EXPECT_EQ(report().unmet, 0u);
}

TEST_F(PackerTest, HalfAGroupIsNotProvidedFor) {
  input_.room = 2;
  group(GroupStrategy::kStrictSpread, std::vector<runtime::ResourceMap>(3, {{"CPU", 1}}), 2);
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().unmet, 2u);
  EXPECT_NE(report().reason.find("max_nodes, 10, is reached"), std::string::npos)
      << report().reason;
  input_.room = 5;
  EXPECT_EQ(added(),
            "cpu cpu cpu");  // the first one; next to it the second has two bundles' room more
  EXPECT_EQ(report().unmet, 0u);
}

TEST_F(PackerTest, TwoGroupsOfOneShapeShareNodes) {
  group(GroupStrategy::kStrictSpread, std::vector<runtime::ResourceMap>(3, {{"CPU", 3}}), 2);
  input_.offers[0].room = 6;
  EXPECT_EQ(added(), "cpu cpu cpu cpu cpu cpu");
  demand_.groups[0].spec.bundles.assign(3, {{"CPU", 2}});
  EXPECT_EQ(added(), "cpu cpu cpu");
}

TEST_F(PackerTest, MixesSpotAndOnDemand) {
  TypeOffer& cpu = input_.offers[0];
  cpu.type.spot.share = 0.5;
  cpu.type.spot.on_demand_base = 1;
  actors(5, {{"CPU", 4}});
  added();
  std::string capacities;
  for (const NewNode& node : result_.add)
    capacities += node.capacity == Capacity::kSpot ? 's' : 'd';
  EXPECT_EQ(capacities, "dsdsd");
  cpu.stands_in = true;
  added();
  for (const NewNode& node : result_.add) EXPECT_EQ(node.capacity, Capacity::kOnDemand);
  EXPECT_NE(result_.add.back().reason.find("spot nodes are short"), std::string::npos);
}

TEST_F(PackerTest, SpotIsClosedWhereItIsAskedForByLabel) {
  actors(1, {{"CPU", 1}}, {{std::string(kCapacityLabel), "spot"}});
  EXPECT_EQ(added(), "");
  EXPECT_NE(report().reason.find("has no spot nodes"), std::string::npos) << report().reason;
  input_.offers[0].type.spot.share = 0.1;
  EXPECT_EQ(added(), "cpu");
  EXPECT_EQ(result_.add[0].capacity, Capacity::kSpot);
}

TEST_F(PackerTest, WhatIsNoAmountIsNamed) {
  actors(1, {{"CPU", -1}});
  EXPECT_EQ(added(), "");
  EXPECT_EQ(report().unmet, 1u);
  EXPECT_NE(report().reason.find("'CPU'"), std::string::npos);
}

class PackerTiming : public PackerTest {};

TEST_F(PackerTiming, ThousandsOfActorsAndHundredsOfNodesAreQuick) {
  input_.room = input_.nodes_max = 1000;
  input_.offers[0].room = 1000;
  for (int i = 0; i < 500; ++i) node({{"CPU", 3}});
  actors(100'000, {{"CPU", 0.01}});
  actors(1000, {{"CPU", 1}});
  group(GroupStrategy::kStrictSpread, std::vector<runtime::ResourceMap>(64, {{"CPU", 2}}), 4);
  const auto begin = std::chrono::steady_clock::now();
  added();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  for (const DemandReport& report : result_.demand)
    EXPECT_EQ(report.unmet, 0u) << report.what << ": " << report.reason;
}

}  // namespace
}  // namespace placement
