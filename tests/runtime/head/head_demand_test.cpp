// The head's answers to programs that add and remove nodes.
#include "tests/runtime/head/head_fixture.h"

namespace runtime {
namespace {

class HeadDemandTest : public HeadTest {
 protected:
  Demand demand() {
    const Answer answer = ask(control::QueryDemand{});
    return std::get<Demand>(*std::move(**answer));
  }
  NodeUse use_of(NodeId node) {
    for (const NodeUse& use : demand().nodes) {
      if (use.info.node == node) return use;
    }
    ADD_FAILURE() << "no node " << node.hex();
    return {};
  }
  static control::DrainNode drain_idle(NodeId node) {
    return {node, std::chrono::seconds(30), "the autoscaler removes it", true};
  }
  static GroupSpec group(std::size_t bundles, std::string name = "") {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.name = std::move(name);
    spec.strategy = GroupStrategy::kStrictSpread;
    spec.bundles.resize(bundles, {{"CPU", 3}});
    return spec;
  }
};

TEST_F(HeadDemandTest, CountsWhatWaitsByShape) {
  EXPECT_TRUE(demand().actors.empty());
  std::vector<Answer> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(ask(control::CreateActor{actor(8)}));
  waiting.push_back(ask(control::CreateActor{actor(16)}));
  ActorSpec labelled = actor(8);
  labelled.labels = {{"zone", "b"}};
  waiting.push_back(ask(control::CreateActor{labelled}));
  const Demand wanted = demand();
  ASSERT_EQ(wanted.actors.size(), 3u);
  EXPECT_EQ(wanted.actors[0].count, 3u);
  EXPECT_EQ(wanted.actors[0].resources, (ResourceMap{{"CPU", 8}}));
  EXPECT_TRUE(wanted.actors[0].example.starts_with("actor Counter ")) << wanted.actors[0].example;
  EXPECT_EQ(wanted.actors[1].count, 1u);
  EXPECT_EQ(wanted.actors[2].labels, labelled.labels);
  EXPECT_EQ(wanted.unlisted, 0u);
}

TEST_F(HeadDemandTest, AGroupIsTheDemandOfWhatWaitsInIt) {
  ask(control::CreateActor{actor(4)});  // takes the only node
  GroupSpec first = group(2, "first");
  const Answer one = ask(control::CreateGroup{first});
  const Answer two = ask(control::CreateGroup{group(2, "second")});
  const Answer three = ask(control::CreateGroup{group(3)});
  ActorSpec inside = actor(1);
  inside.bundle = BundleSlot{first.group, 0};
  const Answer waits = ask(control::CreateActor{inside});
  const Demand wanted = demand();
  ASSERT_EQ(wanted.groups.size(), 2u);
  EXPECT_EQ(wanted.groups[0].count, 2u);
  EXPECT_EQ(wanted.groups[0].spec.name, "first");
  EXPECT_EQ(wanted.groups[1].spec.bundles.size(), 3u);
  EXPECT_TRUE(wanted.actors.empty());
  EXPECT_EQ(wanted.bound, 0u);
}

TEST_F(HeadDemandTest, WhatNoNewNodeHelpsIsCounted) {
  ActorSpec bound = actor(8);
  bound.node = node_;
  const Answer waits = ask(control::CreateActor{bound});
  EXPECT_EQ(demand().bound, 1u);
  EXPECT_TRUE(demand().actors.empty());
}

TEST_F(HeadDemandTest, ListsEndAndTheRestIsCounted) {
  std::vector<Answer> waiting;
  for (std::size_t i = 0; i < Demand::kShapesMax + 5; ++i)
    waiting.push_back(ask(control::CreateActor{actor(100 + static_cast<double>(i))}));
  waiting.push_back(ask(control::CreateActor{actor(100)}));
  for (std::size_t i = 0; i < 3; ++i)
    waiting.push_back(ask(control::CreateGroup{group(9'000 + i)}));
  const Demand wanted = demand();
  EXPECT_EQ(wanted.actors.size(), Demand::kShapesMax);
  EXPECT_EQ(wanted.actors[0].count, 2u);
  EXPECT_EQ(wanted.groups.size(), 2u);
  EXPECT_EQ(wanted.unlisted, 6u);
}

TEST_F(HeadDemandTest, KnowsWhatKeepsANode) {
  const NodeId other = join(4);
  EXPECT_TRUE(use_of(other).is_idle());
  EXPECT_EQ(use_of(node_).jobs, 1u);
  living(4);
  std::vector<ActorSpec> placed;
  for (int i = 0; i < 4; ++i) placed.push_back(living(1));
  EXPECT_EQ(use_of(node_).actors + use_of(other).actors, 5u);
  NodeUse use = use_of(record(placed[0]).node);
  EXPECT_FALSE(use.is_idle());
  EXPECT_NE(use.describe().find("4 actors"), std::string::npos) << use.describe();
  const std::uint64_t before = use.last_placed;
  EXPECT_GT(before, 0u);
  for (const ActorSpec& one : placed) exit(one);
  use = use_of(record(placed[0]).node);
  EXPECT_EQ(use.actors, 0u);
  EXPECT_EQ(use.last_placed, before);  // one that looks now sees that it was used meanwhile
}

TEST_F(HeadDemandTest, AGroupThatHasItsPlaceWaitsForNothing) {
  const Answer asked = ask(control::CreateGroup{group(1)});
  EXPECT_FALSE(asked->has_value());  // its node has not answered yet
  EXPECT_TRUE(demand().groups.empty());
  EXPECT_EQ(use_of(node_).bundles, 1u);
}

TEST_F(HeadDemandTest, WhatFindsNoRoomOutsideADrainedNodeIsDemand) {
  const NodeId other = join(8);
  ActorSpec moves = actor(7);
  moves.max_restarts = -1;
  living(moves);
  ASSERT_EQ(record(moves).node, other);
  const ActorSpec stays = living(1);  // may not be started elsewhere
  EXPECT_TRUE(demand().actors.empty());
  ASSERT_TRUE(status(ask(control::DrainNode{other, std::chrono::seconds(30), "preemption"})).ok());
  const Demand wanted = demand();
  ASSERT_EQ(wanted.actors.size(), 1u);
  EXPECT_EQ(wanted.actors[0].resources, (ResourceMap{{"CPU", 7}}));
  EXPECT_EQ(wanted.actors[0].count, 1u);
  const NodeId third = join(8);  // and it moves there
  EXPECT_TRUE(demand().actors.empty());
  EXPECT_EQ(use_of(third).actors, 1u);  // the place is kept for it
  EXPECT_TRUE(links_.take<control::StopActor>());
}

TEST_F(HeadDemandTest, AGangThatFindsNoRoomOutsideADrainedNodeIsDemandAsAWhole) {
  const NodeId other = join(4);
  const GroupSpec gang = group(2);
  ask(control::CreateGroup{gang});
  EXPECT_EQ(reserved(), 2);
  ASSERT_TRUE(head().tables().groups().find(gang.group)->placed);
  EXPECT_EQ(use_of(node_).info.available.at("CPU"),
            3);  // this scheduler counts one for each bundle
  ASSERT_TRUE(status(ask(control::DrainNode{other, std::chrono::seconds(30), "preemption"})).ok());
  ASSERT_EQ(demand().groups.size(), 1u);
  EXPECT_EQ(demand().groups[0].spec.group, gang.group);
  EXPECT_EQ(use_of(node_).info.available.at("CPU"), 6);  // with what it gives back there
  join(4);                                               // and it moves, once its nodes hold it
  EXPECT_TRUE(demand().groups.empty());
}

TEST_F(HeadDemandTest, AGangWhoseActorsEndFirstKeepsWaitingForItsPlace) {
  const GroupSpec gang = group(1);
  ask(control::CreateGroup{gang});
  EXPECT_EQ(reserved(), 1);
  ActorSpec member = actor(1);
  member.max_restarts = -1;
  member.bundle = BundleSlot{gang.group, 0};
  living(member);
  const NodeId other = join(4);
  ASSERT_TRUE(status(ask(control::DrainNode{node_, std::chrono::seconds(30), "preemption"})).ok());
  ASSERT_TRUE(head().tables().groups().find(gang.group)->is_torn());
  ASSERT_EQ(demand().groups.size(),
            1u);  // else the node that it waits for might be taken away as idle
  exit(member);
  EXPECT_TRUE(demand().groups.empty());
  EXPECT_EQ(use_of(other).bundles, 1u);
}

TEST_F(HeadDemandTest, AnIdleNodeIsDrainedAndABusyOneIsNot) {
  const NodeId other = join(8);
  const ActorSpec busy = living(8);
  ASSERT_EQ(record(busy).node, other);
  const Status refused = status(ask(drain_idle(other)));
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("1 actor"), std::string::npos) << refused.message();
  EXPECT_FALSE(use_of(other).is_leaving());
  EXPECT_EQ(status(ask(drain_idle(NodeId::random()))).code(), ErrorCode::kNotFound);

  exit(busy);
  EXPECT_TRUE(status(ask(drain_idle(other))).ok());
  EXPECT_TRUE(status(ask(drain_idle(other))).ok());  // an answer that was lost
  EXPECT_TRUE(use_of(other).is_leaving());
  const Answer waits = ask(control::CreateActor{actor(8)});
  EXPECT_FALSE(waits->has_value());
  EXPECT_EQ(demand().actors.size(), 1u);
}

TEST_F(HeadDemandTest, ANodeThatIsDrainedStaysSoWithTheNextHead) {
  const NodeId other = join(8);
  ASSERT_TRUE(status(ask(drain_idle(other))).ok());
  restart_head();
  EXPECT_TRUE(use_of(other).is_leaving());
  EXPECT_TRUE(return_node(other, {}, {}).ok());
  const Answer waits = ask(control::CreateActor{actor(8)});
  EXPECT_FALSE(waits->has_value());
  head().node_lost(other, "it was removed");
  EXPECT_EQ(demand().nodes.size(), 1u);
}

}  // namespace
}  // namespace runtime
