// A head that is killed and started again with its journal: what it knows, what it asks of nodes
// that come back.
#include "tests/runtime/head/head_fixture.h"

namespace runtime {
namespace {

class HeadRestart : public HeadTest {};

TEST_F(HeadRestart, ActorsThatRunGoOn) {
  ActorSpec spec = living(1, "counter");
  restart_head();
  EXPECT_TRUE(return_node(node_, {instance(spec)}, {job_}).ok());
  EXPECT_EQ(reserved(), 1);  // it is told what it is to hold for groups, which is nothing
  EXPECT_TRUE(links_.requests.empty());
  Answer found = ask(control::ResolveActor{{}, "counter", ""});
  ASSERT_TRUE(found->has_value() && (*found)->ok());
  EXPECT_EQ(std::get<ActorAddress>(***found).actor, spec.actor);
}

TEST_F(HeadRestart, WhatWasReservedStaysReserved) {
  ActorSpec first = living(3);
  restart_head();
  EXPECT_TRUE(return_node(node_, {instance(first)}, {job_}).ok());
  Answer second = ask(control::CreateActor{actor(2)});
  EXPECT_FALSE(links_.take<control::StartActor>());
  exit(first);
  EXPECT_TRUE(started());
  EXPECT_TRUE(status(second).ok());
}

TEST_F(HeadRestart, IncarnationsGoOnGrowing) {
  ActorSpec spec = actor();
  spec.max_restarts = 5;
  living(spec);
  const std::uint64_t before = incarnation(spec);
  restart_head();
  EXPECT_TRUE(return_node(node_, {{spec.actor, before}}, {job_}).ok());
  exit(spec);
  EXPECT_TRUE(started());
  EXPECT_GT(incarnation(spec), before);
  EXPECT_EQ(record(spec).restarts, 1u);
}

TEST_F(HeadRestart, AnActorThatIsGoneWhenItsNodeComesBackHasEnded) {
  ActorSpec mortal = living();
  ActorSpec restarts = actor();
  restarts.max_restarts = 1;
  living(restarts);
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  EXPECT_EQ(record(mortal).phase, ActorPhase::kDead);
  EXPECT_TRUE(started());
  EXPECT_EQ(record(restarts).phase, ActorPhase::kAlive);
  EXPECT_EQ(record(restarts).restarts, 1u);
}

TEST_F(HeadRestart, AStartWhoseAnswerIsLostIsAskedAgain) {
  ActorSpec spec = actor();
  ask(control::CreateActor{spec});
  ASSERT_TRUE(links_.take<control::StartActor>());
  const std::uint64_t before = incarnation(spec);
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  Answer again = ask(control::CreateActor{spec});  // by its creator, who has heard nothing
  EXPECT_FALSE(again->has_value());
  EXPECT_TRUE(started());
  EXPECT_TRUE(status(again).ok());
  EXPECT_EQ(incarnation(spec), before);
}

TEST_F(HeadRestart, WhatWaitedForAPlaceGoesOnWaiting) {
  ActorSpec large = actor(100), small = actor(4);
  living(2);
  ask(control::CreateActor{large});
  ask(control::CreateActor{small});
  restart_head();
  EXPECT_TRUE(
      return_node(node_, {}, {job_}).ok());  // what ran there is gone, so that there is room
  EXPECT_TRUE(started());
  EXPECT_EQ(record(small).phase, ActorPhase::kAlive);
  EXPECT_EQ(record(large).phase, ActorPhase::kPending);
  EXPECT_NE(record(large).pending_reason, "");
}

TEST_F(HeadRestart, WhatIsNotAskedForAgainDoesNotWaitForEver) {
  ActorSpec large = actor(100), wanted = actor(100);
  ask(control::CreateActor{large});
  ask(control::CreateActor{wanted});
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  Answer again = ask(control::CreateActor{wanted}, {}, {}, std::chrono::minutes(10));
  advance(std::chrono::minutes(2));
  EXPECT_EQ(record(large).phase, ActorPhase::kDead);
  EXPECT_FALSE(again->has_value());
  advance(std::chrono::minutes(10));
  EXPECT_EQ(status(again).code(), ErrorCode::kResourceExhausted);
}

TEST_F(HeadRestart, AKillThatWasAcknowledgedOrNotHappens) {
  ActorSpec spec = actor();
  spec.max_restarts = -1;
  living(spec);
  ask(control::KillActor{spec.actor});
  ASSERT_TRUE(links_.take<control::StopActor>());  // and the node never hears of it
  restart_head();
  EXPECT_TRUE(return_node(node_, {instance(spec)}, {job_}).ok());
  EXPECT_TRUE(links_.take<control::StopActor>());
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
}

TEST_F(HeadRestart, StopsWhatTheClusterHasReplaced) {
  ActorSpec spec = actor();
  spec.max_restarts = 5;
  living(spec);
  const std::uint64_t old = incarnation(spec);
  exit(spec);
  ASSERT_TRUE(started());
  restart_head();
  EXPECT_TRUE(
      return_node(node_, {{spec.actor, old}, instance(spec), {ActorId::random(), 3}}, {job_}).ok());
  auto first = links_.take<control::StopActor>(), second = links_.take<control::StopActor>();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(links_.take<control::StopActor>());
  EXPECT_EQ(record(spec).phase, ActorPhase::kAlive);
}

TEST_F(HeadRestart, AJobWhoseDriverIsGoneEnds) {
  ActorSpec spec = living();
  restart_head();
  EXPECT_TRUE(return_node(node_, {instance(spec)}, {}).ok());
  EXPECT_FALSE(head().tables().jobs().runs(job_));
  EXPECT_TRUE(links_.take<control::EndJob>());
}

TEST_F(HeadRestart, ANodeThatWasDeclaredDeadIsRefused) {
  NodeId other = join(2);
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  head().node_lost(other, "it has been silent for 10 s");
  EXPECT_EQ(return_node(other, {}, {}).code(), ErrorCode::kCancelled);
  EXPECT_EQ(return_node(NodeId::random(), {}, {}).code(), ErrorCode::kCancelled);
}

TEST_F(HeadRestart, ActorsOfANodeThatDoesNotComeBackEnd) {
  NodeId other = join(8);
  ActorSpec spec = actor(6);
  spec.max_restarts = 1;
  living(spec);
  ASSERT_EQ(record(spec).node, other);
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  head().node_lost(other, "it has been silent for 10 s");
  EXPECT_EQ(record(spec).phase, ActorPhase::kPending);
  EXPECT_EQ(record(spec).restarts, 1u);
}

TEST_F(HeadRestart, GroupsKeepTheirPlaces) {
  GroupSpec placed{GroupId::random(), "placed", GroupStrategy::kPack, {{{"CPU", 1}}}};
  Answer created = ask(control::CreateGroup{placed});
  reserved();
  ASSERT_TRUE(status(created).ok());
  ActorSpec filler = living(3);
  GroupSpec waiting{GroupId::random(), "waiting", GroupStrategy::kPack, {{{"CPU", 1}}}};
  ask(control::CreateGroup{waiting});
  restart_head();
  EXPECT_TRUE(return_node(node_, {instance(filler)}, {job_}).ok());
  EXPECT_EQ(head().tables().groups().find(placed.group)->nodes, std::vector<NodeId>{node_});
  Answer again = ask(control::CreateGroup{waiting});
  EXPECT_FALSE(again->has_value());
  EXPECT_TRUE(status(ask(control::RemoveGroup{placed.group})).ok());
  reserved();
  EXPECT_TRUE(status(again).ok());
}

TEST_F(HeadRestart, KeysAndNamesAndSavedStatesAreThere) {
  ActorSpec spec = actor(1, "saver");
  spec.max_restarts = 3;
  living(spec);
  ASSERT_TRUE(status(ask(control::KvPut{"key", "value"})).ok());
  ASSERT_TRUE(status(ask(control::KvAdd{"sum", 41})).ok());
  ASSERT_TRUE(status(ask(control::SaveState{spec.actor, incarnation(spec), "half way"})).ok());
  ASSERT_TRUE(
      status(ask(ObjectControl{control::Publish{"", "weights", 7, 2, 1, std::string("bytes")}}))
          .ok());
  restart_head();
  EXPECT_TRUE(return_node(node_, {instance(spec)}, {job_}).ok());
  EXPECT_EQ(std::get<std::string>(***ask(control::KvGet{"key", false})), "value");
  EXPECT_EQ(std::get<std::int64_t>(***ask(control::KvAdd{"sum", 1})), 42);
  EXPECT_EQ(status(ask(control::CreateActor{actor(1, "saver")})).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      status(ask(ObjectControl{control::Publish{"", "weights", 7, 2, 1, std::string("other")}}))
          .code(),
      ErrorCode::kInvalidArgument);
  Answer found = ask(ObjectControl{control::FindPublished{"", "weights", 0, false, false}});
  ASSERT_TRUE(found->has_value() && (*found)->ok());
  EXPECT_EQ(std::get<PublishedObject>(std::get<ObjectControlAnswer>(***found)).version, 7u);
  exit(spec);
  auto start = links_.take<control::StartActor>();
  ASSERT_TRUE(start);
  EXPECT_EQ(std::get<control::StartActor>(start->request.body).spec.saved_state, "half way");
}

TEST_F(HeadRestart, TheDeadAreRemembered) {
  ActorSpec spec = living();
  exit(spec);
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_}).ok());
  Answer found = ask(control::QueryActor{spec.actor, 0});
  ASSERT_TRUE(found->has_value() && (*found)->ok());
  EXPECT_EQ(std::get<ActorState>(***found).phase, ActorPhase::kDead);
  EXPECT_EQ(std::get<ActorState>(***found).death.text, "killed by SIGKILL");
}

TEST_F(HeadRestart, SecondRestartsKnowAsMuch) {
  ActorSpec spec = living(1, "counter");
  for (int i = 0; i < 3; ++i) {
    restart_head();
    EXPECT_TRUE(return_node(node_, {instance(spec)}, {job_}).ok());
    ASSERT_TRUE(status(ask(control::KvAdd{"restarts", 1})).ok());
  }
  EXPECT_EQ(std::get<std::string>(***ask(control::KvGet{"restarts", false})), "3");
  EXPECT_EQ(record(spec).phase, ActorPhase::kAlive);
}

TEST_F(HeadRestart, AnActorWhoseNodeIsAwayStartsWhenItIsBack) {
  ActorSpec spec = actor();
  Answer created = ask(control::CreateActor{spec});
  auto start = links_.take<control::StartActor>();
  ASSERT_TRUE(start);
  links_.away.insert(start->node);
  start->answer(unavailable("the connection broke"));
  EXPECT_FALSE(created->has_value()) << "the node is a member, and comes back or is lost";
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting);
  links_.away.clear();
  ASSERT_TRUE(return_node(start->node, {}, {job_}).ok());
  ASSERT_TRUE(started());
  EXPECT_TRUE(status(created).ok());
}

}  // namespace
}  // namespace runtime
