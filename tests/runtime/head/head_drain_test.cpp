// Nodes that are about to leave, as the head sees it.
#include "head_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class HeadDrainTest : public HeadTest {
 protected:
  HeadDrainTest() : other_(join(4)) {}
  Answer drain(NodeId node, std::chrono::milliseconds time = 30s,
               const std::string& reason = "preemption") {
    return ask(control::DrainNode{node, time, reason}, {}, other_);
  }
  /// Living on the node, whichever the scheduler would choose: it takes the first that has room.
  ActorSpec living_on(NodeId node, std::int32_t max_restarts, double cpus = 1) {
    std::vector<ActorSpec> fillers;
    for (const NodeInfo& info : head().cluster_state().nodes) {
      if (info.node < node && info.available.at("CPU") > 0)
        fillers.push_back(living(actor(info.available.at("CPU"))));
    }
    ActorSpec spec = actor(cpus);
    spec.max_restarts = max_restarts;
    living(spec);
    EXPECT_EQ(record(spec).node, node);
    for (const ActorSpec& filler : fillers) exited(filler);
    return spec;
  }
  const ActorRecord& record(const ActorSpec& spec) {
    return *head().tables().actors().find(spec.actor);
  }
  void exited(const ActorSpec& spec, const std::string& why = "drained") {
    ask(control::ActorExited{spec.actor, incarnation(spec), {why, 7, 0, 0, ""}}, {},
        record(spec).node);
  }
  std::optional<NodeDrain> drain_of(NodeId node) {
    for (const NodeInfo& info : head().cluster_state().nodes) {
      if (info.node == node) return info.drain;
    }
    return std::nullopt;
  }
  /// Answers all requests to take objects over: that many could not be.
  int answer_rounds(std::int64_t failed = 0) {
    int rounds = 0;
    while (auto asked = links_.take<control::TakeOver>()) {
      ++rounds;
      asked->answer(ControlAnswer{failed});
    }
    return rounds;
  }

  /// The first version of "weights" in the namespace "ns".
  ObjectLocation publish_on(NodeId node) {
    ObjectLocation location;
    location.id = ObjectId::random();
    location.node = node;
    location.size = 1 << 20;
    Answer published = ask(ObjectControl{
        control::Publish{"ns", "weights", 1, 1, 1, std::vector<ObjectLocation>{location}}});
    links_.take<ObjectControl>()->answer(ControlAnswer{ObjectControlAnswer{location}});
    EXPECT_TRUE(status(published).ok());
    return location;
  }
  /// A bundle there and one on another node.
  GroupSpec gang_on(NodeId node) {
    while (true) {
      GroupSpec spec;
      spec.group = GroupId::random();
      spec.strategy = GroupStrategy::kStrictSpread;
      spec.bundles.assign(2, {{"CPU", 1}});
      ask(control::CreateGroup{spec});
      reserved();
      const std::vector<NodeId>& nodes = head().tables().groups().find(spec.group)->nodes;
      if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
        for (const ActorSpec& filler : std::exchange(fillers_, {})) exited(filler);
        return spec;
      }
      ask(control::RemoveGroup{spec.group});
      reserved();
      fillers_.push_back(living(actor(1)));  // on a node before it
    }
  }
  ActorSpec member(const GroupSpec& gang, std::uint32_t bundle, std::int32_t max_restarts) {
    ActorSpec spec = actor(0);
    spec.bundle = BundleSlot{gang.group, bundle};
    spec.max_restarts = max_restarts;
    return living(spec);
  }

  NodeId other_;
  std::vector<ActorSpec> fillers_;
};

TEST_F(HeadDrainTest, AnEmptyNodeIsToldToLeaveOnceItsObjectsAreTakenOver) {
  ASSERT_TRUE(status(drain(other_)).ok());
  EXPECT_FALSE(links_.take<control::Leave>());
  auto asked = links_.take<control::TakeOver>();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->node, node_);
  asked->answer(ControlAnswer{std::int64_t{2}});  // two could not be
  EXPECT_FALSE(links_.take<control::Leave>());
  advance(1s);
  EXPECT_EQ(answer_rounds(), 1);
  auto leave = links_.take<control::Leave>();
  ASSERT_TRUE(leave);
  EXPECT_EQ(leave->node, other_);
  head().node_lost(other_, "it closed its connection");
  const NodeDeparture* departure = head().tables().nodes().departure(other_);
  ASSERT_NE(departure, nullptr);
  EXPECT_TRUE(departure->drained);
  EXPECT_NE(departure->why.find("preemption"), std::string::npos);
}

TEST_F(HeadDrainTest, ARestartableActorMovesAndNoRestartIsCounted) {
  const ActorSpec spec = living_on(node_, 1);
  drain(node_, 30s);
  auto stop = links_.take<control::StopActor>();
  ASSERT_TRUE(stop) << record(spec).pending_reason;
  const auto& body = std::get<control::StopActor>(stop->request.body);
  EXPECT_TRUE(body.drain);
  EXPECT_LT(body.grace, 30s);
  EXPECT_GT(body.grace, 20s);
  exited(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting) << "at once: its place was kept";
  EXPECT_EQ(record(spec).node, other_);
  EXPECT_EQ(record(spec).restarts, 1u);
  EXPECT_EQ(record(spec).moves, 1u);
  links_.take<control::StartActor>()->answer(ControlAnswer{ActorAddress{}});
  // A crash may still use up the one restart, and then no other.
  exited(spec, "killed by SIGKILL");
  EXPECT_NE(record(spec).phase, ActorPhase::kDead);
}

TEST_F(HeadDrainTest, ItsPlaceElsewhereIsItsOwn) {
  const ActorSpec spec = living_on(node_, -1, 3);
  drain(node_, 30s);
  ASSERT_TRUE(links_.take<control::StopActor>());
  // The other node's four CPUs have one left.
  Answer greedy = ask(control::CreateActor{actor(2)}, {}, other_);
  EXPECT_FALSE(greedy->has_value());
  exited(spec);
  EXPECT_EQ(record(spec).node, other_);
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting);
  EXPECT_FALSE(greedy->has_value());
}

TEST_F(HeadDrainTest, WhatFitsNowhereStaysAndMovesWhenANodeJoins) {
  const ActorSpec filler = living_on(other_, 0, 3);
  const ActorSpec spec = living_on(node_, -1, 2);
  drain(node_, 30s);
  EXPECT_FALSE(links_.take<control::StopActor>());
  EXPECT_NE(record(spec).pending_reason.find("no node has CPU"), std::string::npos)
      << record(spec).pending_reason;
  EXPECT_EQ(record(spec).phase, ActorPhase::kAlive);
  EXPECT_NE(drain_of(node_)->waits_for.find("no node has CPU"), std::string::npos)
      << drain_of(node_)->waits_for;
  const NodeId third = join(4);
  ASSERT_TRUE(links_.take<control::StopActor>());
  exited(spec);
  EXPECT_EQ(record(spec).node, third);
}

TEST_F(HeadDrainTest, AGangMovesAsAWholeAndUsesUpNoRestart) {
  const NodeId third = join(4);
  const GroupSpec gang = gang_on(other_);
  const NodeId away = head().tables().groups().find(gang.group)->nodes[0] == other_
                          ? head().tables().groups().find(gang.group)->nodes[1]
                          : head().tables().groups().find(gang.group)->nodes[0];
  const std::uint32_t there = head().tables().groups().find(gang.group)->nodes[0] == other_ ? 0 : 1;
  const ActorSpec leaving = member(gang, there, 1), staying = member(gang, 1 - there, 1);
  drain(other_, 30s);
  EXPECT_TRUE(head().tables().groups().find(gang.group)->is_torn());
  auto stop = links_.take<control::StopActor>(), another = links_.take<control::StopActor>();
  ASSERT_TRUE(stop && another);
  for (const auto* sent : {&*stop, &*another}) {
    const auto& body = std::get<control::StopActor>(sent->request.body);
    EXPECT_TRUE(body.drain);
    EXPECT_GT(body.grace, 20s);
    EXPECT_LT(body.grace, 30s);
    EXPECT_NE(body.reason.find("drained (preemption)"), std::string::npos) << body.reason;
  }
  answer_rounds();
  EXPECT_FALSE(links_.take<control::Leave>());
  exited(leaving);
  reserved();
  EXPECT_FALSE(head().tables().groups().find(gang.group)->placed)
      << "one of them has not ended yet";
  exited(staying);
  reserved();
  const GroupState& placed = *head().tables().groups().find(gang.group);
  ASSERT_TRUE(placed.placed) << placed.pending_reason;
  EXPECT_EQ(std::set<NodeId>(placed.nodes.begin(), placed.nodes.end()),
            (std::set<NodeId>{away, away == third ? node_ : third}));
  EXPECT_TRUE(started());
  EXPECT_TRUE(started());
  for (const ActorSpec* spec : {&leaving, &staying}) {
    EXPECT_EQ(record(*spec).phase, ActorPhase::kAlive);
    EXPECT_EQ(record(*spec).moves, 1u);
    EXPECT_EQ(record(*spec).restarts, 1u);
  }
  answer_rounds();
  EXPECT_TRUE(links_.take<control::Leave>());
}

TEST_F(HeadDrainTest, AGangThatFitsNowhereStaysAsAWholeUntilItDoes) {
  const GroupSpec gang = gang_on(other_);
  const std::uint32_t there = head().tables().groups().find(gang.group)->nodes[0] == other_ ? 0 : 1;
  const ActorSpec leaving = member(gang, there, 1), staying = member(gang, 1 - there, 1);
  drain(other_, 30s);
  EXPECT_FALSE(links_.take<control::StopActor>());
  EXPECT_TRUE(head().tables().groups().find(gang.group)->placed);
  EXPECT_NE(record(leaving).pending_reason.find("no room for the group elsewhere"),
            std::string::npos)
      << record(leaving).pending_reason;
  join(4);
  EXPECT_TRUE(links_.take<control::StopActor>());
  EXPECT_TRUE(links_.take<control::StopActor>());
}

TEST_F(HeadDrainTest, AGangWithAMortalActorStaysToTheEnd) {
  join(4);
  const GroupSpec gang = gang_on(other_);
  const std::uint32_t there = head().tables().groups().find(gang.group)->nodes[0] == other_ ? 0 : 1;
  const ActorSpec leaving = member(gang, there, 1), mortal = member(gang, 1 - there, 0);
  drain(other_, 10s);
  EXPECT_FALSE(links_.take<control::StopActor>());
  EXPECT_NE(record(leaving).pending_reason.find("max_restarts is 0"), std::string::npos)
      << record(leaving).pending_reason;
  answer_rounds();
  advance(10001ms);
  ASSERT_TRUE(links_.take<control::Leave>());
  head().node_lost(other_, "it closed its connection");
  EXPECT_EQ(record(leaving).moves, 1u) << "its node was drained, and no restart is used up";
  ASSERT_TRUE(links_.take<control::StopActor>());
  exited(mortal);
  EXPECT_EQ(record(mortal).phase, ActorPhase::kDead);
}

TEST_F(HeadDrainTest, AtTheDeadlineTheNodeGoesAndTheCauseNamesTheDrain) {
  const ActorSpec mortal = living_on(other_, 0);
  const ActorSpec hanging = living_on(other_, 1);
  drain(other_, 10s);
  EXPECT_NE(record(mortal).pending_reason.find("max_restarts"), std::string::npos)
      << record(mortal).pending_reason;
  EXPECT_LE(head().next_tick(), now_ + 10s);
  answer_rounds();
  advance(9s);
  EXPECT_GE(answer_rounds(), 1) << "once more before the end";
  EXPECT_FALSE(links_.take<control::Leave>());
  advance(1001ms);
  ASSERT_TRUE(links_.take<control::Leave>());
  head().node_lost(other_, "it closed its connection");
  EXPECT_EQ(record(mortal).phase, ActorPhase::kDead);
  EXPECT_NE(record(mortal).death.text.find("was drained (preemption)"), std::string::npos)
      << record(mortal).death.text;
  EXPECT_NE(record(hanging).phase, ActorPhase::kDead);
  EXPECT_EQ(record(hanging).moves, 1u);
}

TEST_F(HeadDrainTest, ANodeThatDiesBeforeItsDeadlineUsesUpNoRestartEither) {
  const ActorSpec spec = living_on(other_, 1);
  drain(other_, 100s);
  head().node_lost(other_, "its connection broke");
  EXPECT_EQ(record(spec).moves, 1u);
  EXPECT_NE(record(spec).phase, ActorPhase::kDead);
  EXPECT_FALSE(head().tables().nodes().departure(other_)->why.empty());
}

TEST_F(HeadDrainTest, AnotherHeadGoesOnWithIt) {
  const ActorSpec spec = living_on(other_, 1);
  drain(other_, 30s);
  ASSERT_TRUE(links_.take<control::StopActor>());
  const control::ActorInstance there = instance(spec);
  restart_head();
  ASSERT_TRUE(drain_of(other_));
  EXPECT_GT(drain_of(other_)->left, 25s);
  ASSERT_TRUE(return_node(node_, {}, {job_}).ok());
  ASSERT_TRUE(return_node(other_, {there}, {}).ok());
  auto stop = links_.take<control::StopActor>();
  ASSERT_TRUE(stop) << "whether the node was told, the earlier head has taken with it";
  EXPECT_EQ(stop->node, other_);
  EXPECT_FALSE(links_.events.empty());
  exited(spec);
  EXPECT_EQ(record(spec).node, node_);
  EXPECT_EQ(record(spec).moves, 1u);
  EXPECT_TRUE(started());
  // Nothing new comes there meanwhile.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(record(living(actor(1))).node, node_);
  answer_rounds();
  EXPECT_TRUE(links_.take<control::Leave>());
}

TEST_F(HeadDrainTest, AnEarlierDeadlineCounts) {
  const ActorSpec mortal = living_on(other_, 0);
  drain(other_, 100s);
  drain(other_, 500s);
  EXPECT_LE(drain_of(other_)->left, 100s);
  drain(other_, 5s, "spot");
  EXPECT_LE(drain_of(other_)->left, 5s);
  EXPECT_EQ(drain_of(other_)->reason, "spot");
}

TEST_F(HeadDrainTest, RefusesWhatCannotBe) {
  EXPECT_EQ(status(drain(NodeId::random())).code(), ErrorCode::kNotFound);
  EXPECT_EQ(status(drain(other_, 0ms)).code(), ErrorCode::kInvalidArgument);
  NodeInfo head_node;
  head_node.node = NodeId::random();
  head_node.is_head = true;
  ask(control::RegisterNode{head_node}, {}, head_node.node);
  EXPECT_NE(status(drain(head_node.node)).message().find("hosts the head"), std::string::npos);
  drain(other_, 30s, std::string(5000, 'x') + "\n");
  EXPECT_LE(drain_of(other_)->reason.size(), 200u);
}

TEST_F(HeadDrainTest, WatchersGetDrainsAndDepartures) {
  const auto look = [&](std::uint64_t version) { return ask(control::WatchNodes{version}); };
  const auto list_of = [](const Answer& answer) { return std::get<control::NodeList>(***answer); };
  const control::NodeList first = list_of(look(0));
  EXPECT_EQ(first.nodes.size(), 2u);
  EXPECT_TRUE(first.departed.empty());
  Answer next = look(first.version);
  EXPECT_FALSE(next->has_value());
  drain(other_, 30s);
  ASSERT_TRUE(next->has_value());
  const control::NodeList second = list_of(next);
  EXPECT_GT(second.version, first.version);
  // A node that comes and goes before the watcher looks again.
  const NodeId brief = join(1);
  head().node_lost(brief, "it died");
  head().node_lost(other_, "it left");
  const control::NodeList third = list_of(look(second.version));
  ASSERT_EQ(third.departed.size(), 2u);
  EXPECT_EQ(third.departed[0].node.node, brief);
  EXPECT_FALSE(third.departed[0].drained);
  EXPECT_GT(third.departed[0].node.joined_as, second.version);
  EXPECT_TRUE(third.departed[1].drained);
  EXPECT_TRUE(list_of(look(0)).departed.empty()) << "of no use to one who knows nothing";
}

TEST_F(HeadDrainTest, PublishedCopiesAreMovedBeforeTheNodeLeaves) {
  const ObjectLocation location = publish_on(other_);
  drain(other_, 30s);
  answer_rounds();
  EXPECT_FALSE(links_.take<control::Leave>());
  auto adopt = links_.take<ObjectControl>();
  ASSERT_TRUE(adopt);
  EXPECT_EQ(adopt->node, node_);
  ObjectLocation copy = location;
  copy.node = node_;
  adopt->answer(ControlAnswer{ObjectControlAnswer{copy}});
  answer_rounds();
  EXPECT_TRUE(links_.take<control::Leave>());
  head().node_lost(other_, "it left");
  Answer found = ask(ObjectControl{control::FindPublished{"ns", "weights", 1, false, false}});
  ASSERT_TRUE(status(found).ok());
}

TEST_F(HeadDrainTest, AVersionThatOneNodeCannotTakeIsOfferedToTheNext) {
  join(4);
  publish_on(other_);
  drain(other_, 30s);
  auto first = links_.take<ObjectControl>();
  ASSERT_TRUE(first);
  first->answer(resource_exhausted("its store is full"));
  advance(1s);
  auto second = links_.take<ObjectControl>();
  ASSERT_TRUE(second);
  EXPECT_NE(second->node, first->node);
  second->answer(resource_exhausted("its store is full, too"));
  advance(1s);
  EXPECT_TRUE(links_.take<ObjectControl>()) << "perhaps one has room by now";
}

TEST_F(HeadDrainTest, AVersionSavedAtTheLastMomentIsNotLost) {
  const ObjectLocation location = publish_on(other_);
  drain(other_, 30s);
  auto adopt = links_.take<ObjectControl>();
  ASSERT_TRUE(adopt);
  head().node_lost(other_, "its machine went");
  ObjectLocation copy = location;
  copy.node = node_;
  adopt->answer(ControlAnswer{ObjectControlAnswer{copy}});
  Answer found = ask(ObjectControl{control::FindPublished{"ns", "weights", 1, false, false}});
  EXPECT_TRUE(status(found).ok()) << status(found).to_string();
}

TEST_F(HeadDrainTest, AProcessThatDoesNotAnswerTakesNoRoundFromTheOthers) {
  const ActorSpec mortal = living_on(other_, 0);
  drain(other_, 30s);
  auto stuck = links_.take<control::TakeOver>();  // never answered
  ASSERT_TRUE(stuck);
  exited(mortal);
  auto emptied = links_.take<control::TakeOver>();
  ASSERT_TRUE(emptied) << "nothing runs there any more";
  stuck->answer(ControlAnswer{std::int64_t{0}});  // late, of an older round
  EXPECT_FALSE(links_.take<control::Leave>());
  advance(28s);
  auto last = links_.take<control::TakeOver>();
  ASSERT_TRUE(last) << "the last call";
  last->answer(ControlAnswer{std::int64_t{0}});
  EXPECT_TRUE(links_.take<control::Leave>());
}

TEST_F(HeadDrainTest, AGroupThatIsBeingPlacedGoesElsewhere) {
  GroupSpec spec;
  spec.group = GroupId::random();
  spec.strategy = GroupStrategy::kStrictSpread;
  spec.bundles.assign(2, {{"CPU", 1}});
  Answer created = ask(control::CreateGroup{spec});
  const NodeId third = join(4);
  drain(other_, 30s);
  reserved();
  ASSERT_TRUE(status(created).ok());
  const std::vector<NodeId>& nodes = head().tables().groups().find(spec.group)->nodes;
  EXPECT_EQ(std::set<NodeId>(nodes.begin(), nodes.end()), (std::set<NodeId>{node_, third}));
}

TEST_F(HeadDrainTest, AGangWaitsForAMemberThatIsBeingBuilt) {
  join(4);
  const GroupSpec gang = gang_on(other_);
  const std::uint32_t there = head().tables().groups().find(gang.group)->nodes[0] == other_ ? 0 : 1;
  ActorSpec late = actor(0);
  late.bundle = BundleSlot{gang.group, 1 - there};
  late.max_restarts = 1;
  ask(control::CreateActor{late});
  drain(other_, 3600s);
  EXPECT_TRUE(head().tables().groups().find(gang.group)->placed);
  ASSERT_TRUE(started());
  EXPECT_TRUE(head().tables().groups().find(gang.group)->is_torn());
  EXPECT_TRUE(links_.take<control::StopActor>());
}

TEST_F(HeadDrainTest, ASecondDrainHastensThoseThatAreOnTheirWay) {
  const ActorSpec spec = living_on(other_, 1);
  drain(other_, 600s);
  auto first = links_.take<control::StopActor>();
  ASSERT_TRUE(first);
  EXPECT_GT(std::get<control::StopActor>(first->request.body).grace, 500s);
  drain(other_, 30s);
  auto second = links_.take<control::StopActor>();
  ASSERT_TRUE(second);
  EXPECT_LT(std::get<control::StopActor>(second->request.body).grace, 30s);
}

TEST_F(HeadDrainTest, ASecondDrainHastensTheGangThatMovesOnItsOtherNodesToo) {
  join(4);
  const GroupSpec gang = gang_on(other_);
  const std::uint32_t there = head().tables().groups().find(gang.group)->nodes[0] == other_ ? 0 : 1;
  const ActorSpec leaving = member(gang, there, 1), staying = member(gang, 1 - there, 1);
  const auto graces = [&] {
    std::map<ActorId, std::chrono::milliseconds> grace_of;
    while (auto stop = links_.take<control::StopActor>()) {
      const auto& body = std::get<control::StopActor>(stop->request.body);
      EXPECT_EQ(stop->node, record(body.actor == leaving.actor ? leaving : staying).node);
      grace_of[body.actor] = body.grace;
    }
    return grace_of;
  };
  graces();
  drain(other_, 600s);
  auto first = graces();
  ASSERT_TRUE(head().tables().groups().find(gang.group)->is_torn());
  EXPECT_GT(first[leaving.actor], 500s);
  EXPECT_GT(first[staying.actor], 500s);
  drain(other_, 30s);
  auto second = graces();
  for (const ActorId& actor : {leaving.actor, staying.actor}) {
    ASSERT_TRUE(second.contains(actor));
    EXPECT_LT(second[actor], 30s);
  }
  // Placed again, it is no concern of that drain's any more.
  exited(leaving);
  exited(staying);
  reserved();
  ASSERT_TRUE(head().tables().groups().find(gang.group)->placed);
  drain(other_, 10s);
  EXPECT_TRUE(graces().empty());
}

TEST_F(HeadDrainTest, AnotherHeadKeepsThePlaceOfAnActorThatMoves) {
  const ActorSpec spec = living_on(other_, -1, 3);
  drain(other_, 30s);
  ASSERT_TRUE(links_.take<control::StopActor>());
  const control::ActorInstance there = instance(spec);
  restart_head();
  ASSERT_TRUE(return_node(node_, {}, {job_}).ok());
  Answer greedy = ask(control::CreateActor{actor(2)});  // of the four CPUs, one is left
  EXPECT_FALSE(greedy->has_value());
  ASSERT_TRUE(return_node(other_, {there}, {}).ok());
  exited(spec);
  EXPECT_EQ(record(spec).node, node_);
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting);
}

TEST_F(HeadDrainTest, ObjectsOfDrainedNodesAreLookedForAtTheOthers) {
  const ObjectId object = ObjectId::random();
  EXPECT_EQ(status(ask(ObjectControl{control::FindObject{object, other_}})).code(),
            ErrorCode::kNotFound);
  drain(other_, 30s);
  head().node_lost(other_, "it left");
  Answer found = ask(ObjectControl{control::FindObject{object, other_}});
  EXPECT_FALSE(found->has_value());
  ObjectLocation location;
  location.id = object;
  location.node = node_;
  links_.take<ObjectControl>()->answer(ControlAnswer{ObjectControlAnswer{location}});
  ASSERT_TRUE(status(found).ok());
}

}  // namespace
}  // namespace runtime
