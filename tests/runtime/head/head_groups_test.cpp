// Placement groups in a head driven by hand: both phases of their reservation, refusals and deaths
// in between, a gang that loses a node.
#include "tests/runtime/head/head_fixture.h"

namespace runtime {
namespace {

class HeadGroups : public HeadTest {
 protected:
  static GroupSpec group(std::size_t bundles,
                         GroupStrategy strategy = GroupStrategy::kStrictSpread) {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.strategy = strategy;
    spec.bundles.assign(bundles, {{"CPU", 1}});
    return spec;
  }
  /// A group over the nodes that there are, which all take their part.
  GroupSpec placed(std::size_t bundles, GroupStrategy strategy = GroupStrategy::kStrictSpread) {
    GroupSpec spec = group(bundles, strategy);
    Answer answer = ask(control::CreateGroup{spec});
    reserved();
    EXPECT_TRUE(status(answer).ok());
    return spec;
  }
  const GroupState& state(const GroupSpec& spec) {
    return *head().tables().groups().find(spec.group);
  }
  ActorSpec member(const GroupSpec& spec, std::uint32_t bundle, std::int32_t max_restarts) {
    ActorSpec actor_spec = actor(0);
    actor_spec.bundle = BundleSlot{spec.group, bundle};
    actor_spec.max_restarts = max_restarts;
    return living(actor_spec);
  }
  /// What a node is told next, and left without an answer.
  std::optional<SentRequest> reserve_of(NodeId node) {
    for (auto at = links_.requests.begin(); at != links_.requests.end(); ++at) {
      if (at->node != node || !std::holds_alternative<control::Reserve>(at->request.body)) continue;
      SentRequest sent = std::move(*at);
      links_.requests.erase(at);
      return sent;
    }
    return std::nullopt;
  }
  static const control::Reserve& body(const std::optional<SentRequest>& sent) {
    return std::get<control::Reserve>(sent->request.body);
  }
  double cpus_left(NodeId node) {
    for (const NodeInfo& info : head().cluster_state().nodes) {
      if (info.node == node) return info.available.at("CPU");
    }
    return -1;
  }
};

TEST_F(HeadGroups, AreThereOnceEveryNodeHoldsItsPart) {
  NodeId other = join(4);
  GroupSpec spec = group(2);
  Answer answer = ask(control::CreateGroup{spec});
  auto first = reserve_of(node_), second = reserve_of(other);
  ASSERT_TRUE(first && second);
  ASSERT_EQ(body(first).prepare.size(), 1u);
  EXPECT_EQ(body(first).prepare[0], (control::Holding{spec.group, {{"CPU", 1}}}));
  first->answer(ControlAnswer{control::Refusals{}});
  EXPECT_FALSE(answer->has_value());
  EXPECT_FALSE(state(spec).placed);
  second->answer(ControlAnswer{control::Refusals{}});
  EXPECT_TRUE(status(answer).ok());
  EXPECT_EQ(state(spec).placements, 1u);
  advance(std::chrono::milliseconds(10));
  auto commit = reserve_of(other);
  ASSERT_TRUE(commit);
  EXPECT_EQ(body(commit).commit, std::vector<GroupId>{spec.group});
}

TEST_F(HeadGroups, ARefusalLeavesNothingReserved) {
  NodeId other = join(4);
  GroupSpec spec = group(2);
  Answer answer = ask(control::CreateGroup{spec});
  auto first = reserve_of(node_), second = reserve_of(other);
  first->answer(ControlAnswer{control::Refusals{}});
  second->answer(ControlAnswer{control::Refusals{{{spec.group, "it is stopping"}}}});
  EXPECT_FALSE(answer->has_value());
  EXPECT_EQ(cpus_left(node_), 4);
  EXPECT_EQ(cpus_left(other), 4);
  advance(std::chrono::milliseconds(10));
  auto release = reserve_of(node_);
  ASSERT_TRUE(release);
  EXPECT_EQ(body(release).release, std::vector<GroupId>{spec.group});
  release->answer(ControlAnswer{control::Refusals{}});
  EXPECT_NE(state(spec).pending_reason, "");
  // The node that refused gets nothing for a while; then it is asked again.
  advance(std::chrono::milliseconds(1100));
  EXPECT_GE(reserved(), 2);
  EXPECT_TRUE(status(answer).ok());
}

TEST_F(HeadGroups, ANodeThatDiesBetweenThePhasesLeavesNothingReserved) {
  NodeId other = join(4), third = join(4);
  GroupSpec spec = group(3);
  Answer answer = ask(control::CreateGroup{spec});
  auto late = reserve_of(third);
  auto first = reserve_of(node_), second = reserve_of(other);
  first->answer(ControlAnswer{control::Refusals{}});
  head().node_lost(third, "connection reset");
  second->answer(ControlAnswer{control::Refusals{}});
  late->answer(unavailable("node is gone"));
  EXPECT_FALSE(answer->has_value());
  EXPECT_EQ(cpus_left(node_), 4);
  EXPECT_EQ(cpus_left(other), 4);
  join(4);
  reserved();
  EXPECT_TRUE(status(answer).ok());
  EXPECT_EQ(state(spec).placements, 1u);
}

TEST_F(HeadGroups, ManyGoInOneMessageWhileTheLastIsUnanswered) {
  std::vector<Answer> answers;
  answers.push_back(ask(control::CreateGroup{group(1)}));
  for (int i = 0; i < 3; ++i) answers.push_back(ask(control::CreateGroup{group(1)}));
  auto first = reserve_of(node_);
  ASSERT_TRUE(first);
  EXPECT_FALSE(reserve_of(node_));
  first->answer(ControlAnswer{control::Refusals{}});
  auto second = reserve_of(node_);
  ASSERT_TRUE(second);
  EXPECT_EQ(body(second).prepare.size(), 3u);
  EXPECT_EQ(body(second).commit.size(), 1u);
  second->answer(ControlAnswer{control::Refusals{}});
  for (const Answer& answer : answers) EXPECT_TRUE(status(answer).ok());
}

TEST_F(HeadGroups, OneThatIsRemovedWhileItsNodesAreAskedIsForgottenEverywhere) {
  GroupSpec first_group = group(1), second_group = group(1);
  ask(control::CreateGroup{first_group});
  Answer second = ask(control::CreateGroup{second_group});  // waits to be sent
  auto prepare = reserve_of(node_);
  EXPECT_TRUE(status(ask(control::RemoveGroup{first_group.group})).ok());
  EXPECT_TRUE(status(ask(control::RemoveGroup{second_group.group})).ok());
  EXPECT_EQ(status(second).code(), ErrorCode::kCancelled);
  prepare->answer(ControlAnswer{control::Refusals{}});
  advance(std::chrono::milliseconds(10));
  auto release = reserve_of(node_);
  ASSERT_TRUE(release);
  EXPECT_EQ(body(release).release, std::vector<GroupId>{first_group.group});
  EXPECT_TRUE(body(release).prepare.empty());
  EXPECT_EQ(cpus_left(node_), 4);
}

TEST_F(HeadGroups, ALostNodeMovesTheWholeGang) {
  NodeId other = join(4);
  GroupSpec spec = placed(2);
  const NodeId first = state(spec).nodes[0], second = state(spec).nodes[1];
  ASSERT_NE(first, second);
  ASSERT_TRUE(first == node_ || second == node_);
  const std::uint32_t on_node = first == node_ ? 0 : 1;
  ActorSpec survivor = member(spec, on_node, 2), lost = member(spec, 1 - on_node, 1),
            mortal = member(spec, on_node, 0), gone = member(spec, 1 - on_node, 0);
  head().node_lost(other, "connection reset");
  EXPECT_TRUE(state(spec).is_torn());
  // Those on the lost node are gone; the others are told to go, and what they use is not given away
  // before that.
  EXPECT_EQ(record(lost).phase, ActorPhase::kPending);
  EXPECT_EQ(record(gone).phase, ActorPhase::kDead);
  EXPECT_NE(record(gone).death.text.find("no restart left"), std::string::npos)
      << record(gone).death.text;
  EXPECT_EQ(record(survivor).phase, ActorPhase::kAlive);
  auto stop = links_.take<control::StopActor>(), another = links_.take<control::StopActor>();
  ASSERT_TRUE(stop && another);
  for (const auto* sent : {&*stop, &*another}) {
    const auto& stopped = std::get<control::StopActor>(sent->request.body);
    EXPECT_EQ(stopped.drain, stopped.actor == survivor.actor);
    EXPECT_NE(stopped.reason.find("as a whole"), std::string::npos);
  }
  join(4);
  EXPECT_FALSE(state(spec).placed) << "its actors have not ended yet";
  ask(control::ActorExited{survivor.actor, incarnation(survivor), {"stopped", 1, 0, 0, ""}});
  ask(control::ActorExited{
      mortal.actor, incarnation(mortal), {"stopped: no restart left", 1, 0, 0, ""}});
  reserved();
  EXPECT_TRUE(state(spec).placed);
  EXPECT_EQ(state(spec).placements, 2u);
  EXPECT_TRUE(started());
  EXPECT_TRUE(started());
  EXPECT_EQ(record(survivor).phase, ActorPhase::kAlive);
  EXPECT_EQ(record(lost).phase, ActorPhase::kAlive);
  EXPECT_EQ(record(mortal).phase, ActorPhase::kDead);
  EXPECT_EQ(record(survivor).restarts,
            1u);  // it goes with its gang, as if it had been on the lost node
  EXPECT_EQ(record(lost).restarts, 1u);
}

TEST_F(HeadGroups, AGangWaitsForAsLongAsItTakes) {
  NodeId other = join(4);
  GroupSpec spec = placed(2);
  head().node_lost(other, "connection reset");
  advance(std::chrono::hours(10));
  EXPECT_TRUE(state(spec).is_torn());
  Answer waiting =
      ask(control::QueryGroup{spec.group, "", "", true}, {}, {}, std::chrono::seconds(1));
  advance(std::chrono::milliseconds(1500));
  EXPECT_EQ(status(waiting).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(status(waiting).message().find("no room for the group"), std::string::npos)
      << status(waiting).message();
  Answer patient = ask(control::QueryGroup{spec.group, "", "", true});
  join(4);
  reserved();
  EXPECT_TRUE(status(patient).ok());
}

TEST_F(HeadGroups, HaveNamesAndOutliveTheirJobIfDetached) {
  GroupSpec named = group(1);
  named.name = "trainers";
  named.name_space = "lab";
  named.detached = true;
  Answer created = ask(control::CreateGroup{named});
  reserved();
  EXPECT_TRUE(status(created).ok());
  GroupSpec same = group(1);
  same.name = "trainers";
  same.name_space = "lab";
  Answer refused = ask(control::CreateGroup{same});
  EXPECT_EQ(status(refused).code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status(refused).message().find("taken"), std::string::npos);
  GroupSpec brief = placed(1);
  ask(control::EndJob{job_});
  EXPECT_EQ(head().tables().groups().find(brief.group), nullptr);
  JobId next = JobId::random();
  start_job(next);
  Answer found = ask(control::QueryGroup{{}, "trainers", "lab", false}, next);
  ASSERT_TRUE(status(found).ok());
  EXPECT_EQ(std::get<GroupState>(***found).spec.group, named.group);
  Answer mistyped = ask(control::QueryGroup{{}, "trainer", "lab", false}, next);
  EXPECT_EQ(status(mistyped).code(), ErrorCode::kNotFound);
  EXPECT_NE(status(mistyped).message().find("did you mean 'trainers'"), std::string::npos)
      << status(mistyped).message();
  EXPECT_TRUE(status(ask(control::RemoveGroup{named.group}, next)).ok());
  EXPECT_EQ(status(ask(control::QueryGroup{{}, "trainers", "lab", false}, next)).code(),
            ErrorCode::kNotFound);
}

TEST_F(HeadGroups, DetachedOnesNeedANameThatOthersCanSay) {
  GroupSpec nameless = group(1);
  nameless.detached = true;
  EXPECT_EQ(status(ask(control::CreateGroup{nameless})).code(), ErrorCode::kInvalidArgument);
  nameless.name = "g";  // in a namespace of its job's own
  EXPECT_EQ(status(ask(control::CreateGroup{nameless})).code(), ErrorCode::kInvalidArgument);
  ActorSpec inside = actor(0, "a");
  inside.name_space = "lab";
  inside.detached = true;
  inside.bundle = BundleSlot{placed(1).group, 0};
  EXPECT_EQ(status(ask(control::CreateActor{inside})).code(), ErrorCode::kInvalidArgument);
}

TEST_F(HeadGroups, ARestartedHeadKeepsPlacedOnesAndTellsNodesWhatTheyHold) {
  NodeId other = join(4);
  GroupSpec kept = placed(2);
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  auto reset = reserve_of(node_);
  ASSERT_TRUE(reset);
  EXPECT_TRUE(body(reset).reset);
  ASSERT_EQ(body(reset).prepare.size(), 1u);
  EXPECT_EQ(body(reset).prepare[0].group, kept.group);
  EXPECT_EQ(body(reset).commit, std::vector<GroupId>{kept.group});
  EXPECT_TRUE(return_node(other, {}, {}).ok());
  EXPECT_EQ(cpus_left(node_), 3);
  EXPECT_EQ(cpus_left(other), 3);
}

TEST_F(HeadGroups, ARestartedHeadAsksAgainForOneThatWasBeingPrepared) {
  NodeId other = join(4);
  GroupSpec spec = group(2);
  ask(control::CreateGroup{spec});
  auto first = reserve_of(node_);
  first->answer(ControlAnswer{control::Refusals{}});
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  EXPECT_TRUE(return_node(other, {}, {}).ok());
  Answer again = ask(control::CreateGroup{spec});  // by its creator, who has heard nothing
  EXPECT_FALSE(again->has_value());
  reserved();
  EXPECT_TRUE(status(again).ok());
  EXPECT_EQ(cpus_left(node_), 3);
  EXPECT_EQ(cpus_left(other), 3);
}

TEST_F(HeadGroups, ARestartedHeadGoesOnMovingATornGang) {
  NodeId other = join(4);
  GroupSpec spec = placed(2);
  const std::uint32_t on_node = state(spec).nodes[0] == node_ ? 0 : 1;
  ActorSpec survivor = member(spec, on_node, 1);
  head().node_lost(other, "connection reset");
  restart_head();
  EXPECT_TRUE(state(spec).is_torn());
  EXPECT_TRUE(return_node(node_, {instance(survivor)}, {job_}).ok());
  EXPECT_TRUE(links_.take<control::StopActor>());  // the node may never have heard of it
  join(4);
  exit(survivor);
  reserved();
  EXPECT_TRUE(state(spec).placed);
  EXPECT_TRUE(started());
  EXPECT_EQ(record(survivor).phase, ActorPhase::kAlive);
}

TEST_F(HeadGroups, ThousandsThatWaitForTheSameShareOneReason) {
  living(4);
  std::vector<ActorSpec> waiting;
  for (int i = 0; i < 2000; ++i) {
    waiting.push_back(actor(1));
    ask(control::CreateActor{waiting.back()});
  }
  ask(control::KvPut{"k", "v"});
  JobId other = JobId::random();
  start_job(other);
  ask(control::EndJob{other});  // has everything that waits looked at
  advance(std::chrono::milliseconds(60));
  for (const ActorSpec& spec : {waiting.front(), waiting.back()})
    EXPECT_NE(record(spec).pending_reason.find("no node has CPU"), std::string::npos);
}

}  // namespace
}  // namespace runtime
