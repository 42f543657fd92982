// The demand that is made of what the managers say.
#include "runtime/head/demand_reporter.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class DemandReporterTest : public PartTest {
 protected:
  DemandReporterTest() : node_(add_node(4)), job_(add_job(node_)) {}

  DemandReporter::Sources sources() {
    return {
        .pending_actors = [this] { return pending_actors_; },
        .pending_groups = [this] { return pending_groups_; },
        .is_under_way = [this](GroupId group) { return group == under_way_; },
        .places_under_way = [this] { return places_; },
        .kept_places = [this] { return kept_; },
        .stranded_groups = [this] { return stranded_; },
        .shown =
            [this](const NodeInfo& info) {
              NodeInfo node = info;
              node.available = scheduler_.available(info.node);
              return node;
            },
    };
  }

  const NodeId node_;
  const JobId job_;
  std::vector<ActorId> pending_actors_;
  std::vector<GroupId> pending_groups_;
  GroupId under_way_;
  std::vector<std::vector<NodeId>> places_;
  std::vector<WorkMover::KeptPlace> kept_;
  std::set<GroupId> stranded_;
  DemandReporter reporter_{context_, sources()};
};

TEST_F(DemandReporterTest, CountsEachShapeOnce) {
  for (double cpus : {8.0, 8.0, 16.0}) pending_actors_.push_back(add_actor(job_, cpus).actor);
  const Demand demand = reporter_.demand();
  ASSERT_EQ(demand.actors.size(), 2u);
  EXPECT_EQ(demand.actors[0].count, 2u);
  EXPECT_EQ(demand.actors[1].count, 1u);
}

TEST_F(DemandReporterTest, AGroupWhoseNodesAreAskedIsUseNotDemand) {
  const GroupSpec group = add_group(job_, 1);
  pending_groups_ = {group.group};
  EXPECT_EQ(reporter_.demand().groups.size(), 1u);
  under_way_ = group.group;
  places_ = {{node_}};
  EXPECT_TRUE(reporter_.demand().groups.empty());
  EXPECT_EQ(reporter_.node_uses().at(node_).bundles, 1u);
}

TEST_F(DemandReporterTest, APlaceThatIsKeptCountsAsAnActorThere) {
  const NodeId other = add_node(4);
  kept_ = {{ActorId::random(), node_, other}, {ActorId::random(), node_, NodeId::random()}};
  EXPECT_EQ(reporter_.node_uses().at(other).actors, 1u);
}

TEST_F(DemandReporterTest, WhatCannotMoveOffADrainedNodeIsDemand) {
  add_living(job_, 2, -1);
  add_living(job_, 1);
  EXPECT_TRUE(reporter_.demand().actors.empty());
  context_.commit(command::NodeDrains{node_, NodeDrain{"preemption", 20s, {}, 0, ""}});
  const Demand demand = reporter_.demand();
  ASSERT_EQ(demand.actors.size(), 1u) << "the other may not be started elsewhere";
  EXPECT_EQ(demand.actors[0].resources, (ResourceMap{{"CPU", 2}}));
}

TEST_F(DemandReporterTest, AStrandedGroupGivesBackWhatItHasOnOtherNodes) {
  const GroupSpec group = add_placed_group(job_, 1);
  stranded_ = {group.group};
  const Demand demand = reporter_.demand();
  EXPECT_EQ(demand.groups.size(), 1u);
  ASSERT_EQ(demand.nodes.size(), 1u);
  EXPECT_EQ(demand.nodes[0].info.available.at("CPU"), 4);
}

}  // namespace
}  // namespace runtime
