#include "head_fixture.h"

namespace runtime {
namespace {

class HeadActorsTest : public HeadTest {
 protected:
  static ActorSpec restartable(std::int32_t max_restarts) {
    ActorSpec spec = actor(1);
    spec.max_restarts = max_restarts;
    return spec;
  }
  ActorSpec child_of(const ActorSpec& owner, std::string name = "") {
    ActorSpec spec = actor(0, std::move(name));
    spec.owner = owner.actor;
    spec.owner_incarnation = incarnation(owner);
    return spec;
  }
  JobId named_job(const std::string& name_space) {
    JobId job = JobId::random();
    DriverInfo driver;
    driver.name_space = name_space;
    EXPECT_TRUE((*ask(control::StartJob{driver_job(job), driver}, job))->ok());
    return job;
  }
};

// -- Names

TEST_F(HeadActorsTest, ANameIsTakenInItsNamespaceOnly) {
  living(0, "model");
  JobId other = JobId::random();
  start_job(other);
  Answer same_name = ask(control::CreateActor{actor(0, "model")}, other);
  EXPECT_TRUE(started());
  EXPECT_TRUE(status(same_name).ok()) << "each job has its own namespace";
  EXPECT_EQ(status(ask(control::CreateActor{actor(0, "model")})).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(HeadActorsTest, JobsOfOneNamespaceShareNames) {
  JobId one = named_job("team");
  JobId two = named_job("team");
  ask(control::CreateActor{actor(0, "model")}, one);
  ASSERT_TRUE(started());
  EXPECT_TRUE(status(ask(control::ResolveActor{{}, "model", ""}, two)).ok());
  EXPECT_TRUE(status(ask(control::ResolveActor{{}, "model", "team"})).ok());
  EXPECT_EQ(status(ask(control::ResolveActor{{}, "model", ""})).code(), ErrorCode::kNotFound);
  EXPECT_EQ(status(ask(control::CreateActor{actor(0, "model")}, two)).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(HeadActorsTest, GetIfExistsFindsTheLivingActorOfThatClass) {
  ActorSpec first = living(0, "model");
  ActorSpec again = actor(0, "model");
  again.get_if_exists = true;
  Answer found = ask(control::CreateActor{again});
  ASSERT_TRUE(status(found).ok());
  EXPECT_EQ(std::get<ActorAddress>(***found).actor, first.actor);
  EXPECT_FALSE(head_.tables().actors().find(again.actor));
  again.class_name = "Another";
  EXPECT_EQ(status(ask(control::CreateActor{again})).code(), ErrorCode::kInvalidArgument);
  again.name.clear();
  EXPECT_EQ(status(ask(control::CreateActor{again})).code(), ErrorCode::kInvalidArgument);
}

// -- Owners

TEST_F(HeadActorsTest, AnActorEndsWithItsOwner) {
  ActorSpec owner = living(1);
  ActorSpec child = living(child_of(owner));
  ActorSpec grandchild = living(child_of(child));
  exit(owner);
  auto stop = links_.take<control::StopActor>();
  ASSERT_TRUE(stop);
  EXPECT_EQ(std::get<control::StopActor>(stop->request.body).actor, child.actor);
  exit(child);
  stop = links_.take<control::StopActor>();
  ASSERT_TRUE(stop);
  EXPECT_EQ(std::get<control::StopActor>(stop->request.body).actor, grandchild.actor);
}

TEST_F(HeadActorsTest, AnEndedOwnerCreatesNothing) {
  ActorSpec owner = living(restartable(1));
  ActorSpec late = child_of(owner);
  exit(owner);
  EXPECT_EQ(status(ask(control::CreateActor{late})).code(), ErrorCode::kCancelled)
      << "its incarnation has ended";
  ASSERT_TRUE(started());
  EXPECT_EQ(status(ask(control::CreateActor{late})).code(), ErrorCode::kCancelled)
      << "the next one has not asked for it";
  living(child_of(owner));
}

TEST_F(HeadActorsTest, ARestartedOwnersChildrenEnd) {
  ActorSpec owner = living(restartable(1));
  ActorSpec child = child_of(owner);
  child.max_restarts = -1;
  living(child);
  exit(owner);
  EXPECT_TRUE(links_.take<control::StopActor>());
  exit(child);
  EXPECT_EQ(record(child).phase, ActorPhase::kDead) << "it was told to end";
}

TEST_F(HeadActorsTest, ADetachedActorOutlivesItsJobAndOwner) {
  JobId job = named_job("team");
  ActorSpec spec = actor(0, "service");
  spec.detached = true;
  spec.max_restarts = 1;
  ask(control::CreateActor{spec}, job);
  ASSERT_TRUE(started());
  ask(control::KvPut{"k", "v"}, job);
  ask(control::EndJob{job}, job);
  EXPECT_EQ(record(spec).phase, ActorPhase::kAlive);
  EXPECT_TRUE(status(ask(control::ResolveActor{{}, "service", "team"})).ok());
  EXPECT_TRUE(status(ask(control::KvGet{"k", false}, job)).ok()) << "its job's pairs stay";
  living(child_of(spec));
  exit(spec);
  EXPECT_TRUE(started()) << "it is restarted from the ended job's program";
  ask(control::KillActor{spec.actor});
  exit(spec);
  EXPECT_EQ(status(ask(control::KvGet{"k", false}, job)).code(), ErrorCode::kNotFound);
}

TEST_F(HeadActorsTest, ADetachedActorMustBeFindable) {
  ActorSpec spec = actor(0, "service");
  spec.detached = true;
  EXPECT_EQ(status(ask(control::CreateActor{spec})).code(), ErrorCode::kInvalidArgument)
      << "no caller could name the job's own namespace";
  spec.name.clear();
  spec.name_space = "team";
  EXPECT_EQ(status(ask(control::CreateActor{spec})).code(), ErrorCode::kInvalidArgument);
  spec.name = "service";
  ask(control::CreateActor{spec});
  EXPECT_TRUE(started());
}

// -- Restarts

TEST_F(HeadActorsTest, ACrashedActorIsStartedAgainAsOftenAsItMay) {
  ActorSpec spec = living(restartable(2));
  std::uint64_t before = incarnation(spec);
  exit(spec);
  EXPECT_TRUE(record(spec).state().is_restarting());
  Answer resolved = ask(control::ResolveActor{spec.actor, "", ""});
  EXPECT_FALSE(resolved->has_value()) << "callers wait for the next incarnation";
  ASSERT_TRUE(started());
  ASSERT_TRUE(status(resolved).ok());
  EXPECT_GT(std::get<ActorAddress>(***resolved).incarnation, before);
  exit(spec);
  advance(std::chrono::milliseconds(200));
  ASSERT_TRUE(started());
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
  EXPECT_EQ(record(spec).restarts, 2u);
}

TEST_F(HeadActorsTest, RestartsThatFollowOneAnotherFastAreHeldBack) {
  ActorSpec spec = living(restartable(-1));
  exit(spec);
  ASSERT_TRUE(started()) << "the first is not";
  std::chrono::milliseconds delay{100};
  for (int i = 0; i < 5; ++i, delay *= 2) {
    exit(spec);
    EXPECT_FALSE(started());
    EXPECT_EQ(head_.next_tick(), now_ + delay);
    advance(delay);
    ASSERT_TRUE(started());
  }
  advance(std::chrono::minutes(2));
  exit(spec);
  EXPECT_TRUE(started()) << "one that has lived is not";
}

TEST_F(HeadActorsTest, ALostNodesActorsGoToAnother) {
  NodeId other = join(8);
  ActorSpec spec = restartable(1);
  spec.resources["CPU"] = 6;
  living(spec);
  NodeId third = join(8);
  head_.node_lost(other, "connection reset");
  ASSERT_TRUE(started());
  EXPECT_EQ(record(spec).node, third);
}

TEST_F(HeadActorsTest, ARestartThatWaitsForRoomHasNoDeadline) {
  ActorSpec spec = living(restartable(1));
  exit(spec);
  auto lost = links_.take<control::StartActor>();
  ASSERT_TRUE(lost);
  head_.node_lost(node_, "gone");
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead) << "its only restart was on the lost node";
}

TEST_F(HeadActorsTest, AConstructorThatFailsTheSecondTimeEndsTheActor) {
  ActorSpec spec = living(restartable(5));
  exit(spec);
  links_.take<control::StartActor>()->answer(task_failed("boom"));
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
  EXPECT_NE(record(spec).death.text.find("boom"), std::string::npos);
}

TEST_F(HeadActorsTest, AProcessThatEndsInItsRestartUsesUpAnother) {
  ActorSpec spec = living(restartable(2));
  exit(spec);
  links_.take<control::StartActor>()->answer(actor_died("died while it was built"));
  EXPECT_TRUE(record(spec).state().is_restarting());
  advance(std::chrono::seconds(1));
  links_.take<control::StartActor>()->answer(actor_died("died while it was built"));
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
}

TEST_F(HeadActorsTest, KillEndsForGoodUnlessItMayRestart) {
  ActorSpec spec = living(restartable(-1));
  Answer killed = ask(control::KillActor{spec.actor, true});
  ASSERT_TRUE(links_.take<control::StopActor>());
  exit(spec);
  EXPECT_TRUE(status(killed).ok());
  ASSERT_TRUE(started());
  killed = ask(control::KillActor{spec.actor, false});
  exit(spec);
  EXPECT_TRUE(status(killed).ok());
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
}

TEST_F(HeadActorsTest, AnEndedJobRestartsNothing) {
  ActorSpec spec = living(restartable(-1));
  ask(control::EndJob{job_});
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
}

TEST_F(HeadActorsTest, AQuestionAboutAnEarlierIncarnationIsAnsweredAtOnce) {
  ActorSpec spec = living(restartable(-1));
  std::uint64_t first = incarnation(spec);
  Answer waits = ask(control::QueryActor{spec.actor, first});
  EXPECT_FALSE(waits->has_value());
  exit(spec);
  ASSERT_TRUE(status(waits).ok());
  ActorState state = std::get<ActorState>(***waits);
  EXPECT_TRUE(state.is_restarting());
  EXPECT_NE(death_status(state).message().find("being restarted"), std::string::npos);
  ASSERT_TRUE(started());
  EXPECT_TRUE(status(ask(control::QueryActor{spec.actor, first})).ok());
}

TEST_F(HeadActorsTest, StateIsKeptForTheNextIncarnationAndFenced) {
  ActorSpec spec = living(restartable(-1));
  std::uint64_t first = incarnation(spec);
  EXPECT_TRUE(status(ask(control::SaveState{spec.actor, first, "one"})).ok());
  EXPECT_EQ(
      status(ask(control::SaveState{spec.actor, first, std::string((1 << 20) + 1, 'x')})).code(),
      ErrorCode::kResourceExhausted);
  exit(spec);
  EXPECT_EQ(status(ask(control::SaveState{spec.actor, first, "late"})).code(),
            ErrorCode::kCancelled);
  auto start = links_.take<control::StartActor>();
  ASSERT_TRUE(start);
  EXPECT_EQ(std::get<control::StartActor>(start->request.body).spec.saved_state, "one");
  start->answer(ControlAnswer{ActorAddress{}});
  EXPECT_EQ(status(ask(control::SaveState{spec.actor, first, "late"})).code(),
            ErrorCode::kCancelled);
}

// -- Terminate and watch

TEST_F(HeadActorsTest, TerminateDrainsAndEndsForGood) {
  ActorSpec spec = living(restartable(-1));
  Answer ended = ask(control::TerminateActor{spec.actor}, {}, {}, std::chrono::seconds(5));
  auto stop = links_.take<control::StopActor>();
  ASSERT_TRUE(stop);
  const auto& body = std::get<control::StopActor>(stop->request.body);
  EXPECT_TRUE(body.drain);
  EXPECT_EQ(body.grace, std::chrono::seconds(5));
  EXPECT_FALSE(ended->has_value());
  exit(spec);
  EXPECT_TRUE(status(ended).ok());
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
}

TEST_F(HeadActorsTest, WatchersHearOfEveryChange) {
  ActorSpec spec = living(restartable(1));
  auto now = std::get<ActorState>(***ask(control::WatchActor{spec.actor, 0}));
  Answer next = ask(control::WatchActor{spec.actor, now.version});
  EXPECT_FALSE(next->has_value());
  exit(spec);
  ASSERT_TRUE(status(next).ok());
  EXPECT_TRUE(std::get<ActorState>(***next).is_restarting());
  Answer never =
      ask(control::WatchActor{spec.actor, record(spec).version}, {}, {}, std::chrono::seconds(1));
  advance(std::chrono::milliseconds(1001));
  EXPECT_EQ(status(never).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(status(ask(control::WatchActor{ActorId::random(), 0})).code(), ErrorCode::kNotFound);
}

TEST_F(HeadActorsTest, NodeWatchersHearOfThoseThatComeAndGo) {
  auto first = std::get<control::NodeList>(***ask(control::WatchNodes{0}));
  EXPECT_EQ(first.nodes.size(), 1u);
  Answer joined = ask(control::WatchNodes{first.version});
  EXPECT_FALSE(joined->has_value());
  NodeId second = join(2);
  ASSERT_TRUE(status(joined).ok());
  auto two = std::get<control::NodeList>(***joined);
  EXPECT_EQ(two.nodes.size(), 2u);
  Answer left = ask(control::WatchNodes{two.version});
  head_.node_lost(second, "gone");
  ASSERT_TRUE(status(left).ok());
  EXPECT_EQ(std::get<control::NodeList>(***left).nodes.size(), 1u);
}

}  // namespace
}  // namespace runtime
