#include "head_fixture.h"

namespace runtime {
namespace {

TEST_F(HeadTest, CreatesAnActorAndAnswersWithItsAddress) {
  ActorSpec spec = living();
  Answer resolved = ask(control::ResolveActor{spec.actor, "", ""});
  ASSERT_TRUE(status(resolved).ok());
  auto address = std::get<ActorAddress>(***resolved);
  EXPECT_EQ(address.actor, spec.actor);
  EXPECT_GT(address.incarnation, 0u);
}

TEST_F(HeadTest, LaterIncarnationsAreLarger) {
  ActorSpec first = living();
  ActorSpec second = living();
  EXPECT_LT(incarnation(first), incarnation(second));
}

TEST_F(HeadTest, RepeatedCreationJoinsTheFirst) {
  ActorSpec spec = actor();
  Answer first = ask(control::CreateActor{spec});
  Answer second = ask(control::CreateActor{spec});
  auto start = links_.take<control::StartActor>();
  EXPECT_FALSE(links_.take<control::StartActor>());
  start->answer(ControlAnswer{ActorAddress{}});
  EXPECT_TRUE(status(first).ok());
  EXPECT_TRUE(status(second).ok());
}

TEST_F(HeadTest, NamesAreUniqueAmongTheLiving) {
  ActorSpec spec = living(1, "model");
  EXPECT_EQ(status(ask(control::CreateActor{actor(1, "model")})).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(status(ask(control::ResolveActor{{}, "model", ""})).ok());
  ask(control::ActorExited{spec.actor, incarnation(spec), {"killed by SIGKILL", 100, -1, 9, ""}});
  EXPECT_EQ(status(ask(control::ResolveActor{{}, "model", ""})).code(), ErrorCode::kNotFound);
  living(1, "model");
}

TEST_F(HeadTest, WaitsForResourcesThenStarts) {
  ActorSpec large = living(4);
  Answer waiting = ask(control::CreateActor{actor(1)});
  EXPECT_FALSE(waiting->has_value());
  EXPECT_FALSE(links_.take<control::StartActor>());
  ask(control::ActorExited{large.actor, incarnation(large), {}});
  EXPECT_TRUE(links_.take<control::StartActor>());
}

TEST_F(HeadTest, ANewNodeTakesWhatWaits) {
  ask(control::CreateActor{actor(8)});
  NodeId larger = join(8);
  auto start = links_.take<control::StartActor>();
  ASSERT_TRUE(start);
  EXPECT_EQ(start->node, larger);
}

TEST_F(HeadTest, UnplaceableFailsAtItsDeadlineWithTheReason) {
  Answer waiting = ask(control::CreateActor{actor(99)}, {}, {}, std::chrono::seconds(2));
  EXPECT_LE(head_.next_tick(), now_ + std::chrono::seconds(2));
  advance(std::chrono::milliseconds(1900));
  EXPECT_FALSE(waiting->has_value());
  advance(std::chrono::milliseconds(200));
  EXPECT_EQ(status(waiting).code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(status(waiting).message().find("CPU 99"), std::string::npos);
}

TEST_F(HeadTest, ConstructorFailureIsTheCreatorsError) {
  Answer created = ask(control::CreateActor{actor(4)});
  links_.take<control::StartActor>()->answer(task_failed("Counter: boom"));
  EXPECT_EQ(status(created), task_failed("Counter: boom"));
  living(4);  // what it had reserved is free again
}

TEST_F(HeadTest, FinalPlacementErrorsDoNotWait) {
  EXPECT_EQ(status(ask(control::CreateActor{actor(-1)})).code(), ErrorCode::kInvalidArgument);
}

TEST_F(HeadTest, DeathHasItsCause) {
  ActorSpec spec = living();
  Answer asked = ask(control::QueryActor{spec.actor});
  EXPECT_FALSE(asked->has_value());  // it still lives as far as anyone knows
  ask(control::ActorExited{spec.actor, incarnation(spec), {"killed by SIGKILL", 100, -1, 9, ""}});
  ASSERT_TRUE(status(asked).ok());
  auto state = std::get<ActorState>(***asked);
  EXPECT_EQ(state.phase, ActorPhase::kDead);
  Status death = death_status(state);
  EXPECT_EQ(death.code(), ErrorCode::kActorDied);
  for (const char* part : {"Counter", "pid 100", "SIGKILL"})
    EXPECT_NE(death.message().find(part), std::string::npos) << death.message();
  // Callers that come later hear the same.
  EXPECT_EQ(status(ask(control::ResolveActor{spec.actor, "", ""})), death);
  ASSERT_FALSE(links_.events.empty());
  EXPECT_TRUE(std::holds_alternative<control::ActorsDied>(links_.events.back().second));
}

TEST_F(HeadTest, AQuestionAboutALivingActorEndsAfterASecond) {
  ActorSpec spec = living();
  Answer asked = ask(control::QueryActor{spec.actor});
  advance(std::chrono::milliseconds(1001));
  ASSERT_TRUE(status(asked).ok());
  EXPECT_EQ(std::get<ActorState>(***asked).phase, ActorPhase::kAlive);
}

TEST_F(HeadTest, OldIncarnationsCannotDieTwice) {
  ActorSpec spec = living();
  ask(control::ActorExited{spec.actor, incarnation(spec) + 5, {}});
  EXPECT_EQ(head_.tables().actors().find(spec.actor)->phase, ActorPhase::kAlive);
}

TEST_F(HeadTest, KillAnswersOnceTheProcessIsGone) {
  ActorSpec spec = living();
  Answer killed = ask(control::KillActor{spec.actor});
  EXPECT_TRUE(links_.take<control::StopActor>());
  EXPECT_FALSE(killed->has_value());
  ask(control::ActorExited{spec.actor, incarnation(spec), {}});
  EXPECT_TRUE(status(killed).ok());
  EXPECT_TRUE(status(ask(control::KillActor{spec.actor})).ok());
}

TEST_F(HeadTest, AnEndedJobTakesItsActorsPairsAndGroups) {
  ActorSpec spec = living(4);
  Answer waiting = ask(control::CreateActor{actor(1)});
  ask(control::KvPut{"k", "v"});
  ask(control::EndJob{job_});
  EXPECT_EQ(status(waiting).code(), ErrorCode::kCancelled);
  auto end = links_.take<control::EndJob>();
  ASSERT_TRUE(end);
  EXPECT_EQ(std::get<control::EndJob>(end->request.body).job, job_);
  EXPECT_EQ(status(ask(control::KvGet{"k", false})).code(), ErrorCode::kNotFound);
  EXPECT_EQ(status(ask(control::CreateActor{actor()})).code(), ErrorCode::kInvalidArgument);
  ask(control::ActorExited{spec.actor, incarnation(spec), {}});
  EXPECT_EQ(head_.tables().actors().find(spec.actor)->phase, ActorPhase::kDead);
}

TEST_F(HeadTest, ALostNodeTakesItsActorsAndJobs) {
  NodeId other = join(8);
  JobId far = JobId::random();
  start_job(far, other);
  Answer created = ask(control::CreateActor{actor(8)});
  auto start = links_.take<control::StartActor>();
  ASSERT_EQ(start->node, other);
  head_.node_lost(other, "connection reset");
  EXPECT_EQ(status(created).code(), ErrorCode::kActorDied);
  EXPECT_NE(status(created).message().find("connection reset"), std::string::npos);
  EXPECT_FALSE(head_.tables().jobs().runs(far));
  start->answer(ControlAnswer{ActorAddress{}});  // too late, and harmless
  EXPECT_EQ(status(ask(control::QueryCluster{}, {}, other)).code(), ErrorCode::kUnavailable);
}

TEST_F(HeadTest, WhatIsLostWhileTheClusterEndsIsNotStartedAgain) {
  const NodeId other = join(4);
  ActorSpec spec = actor(1, "a");
  spec.name_space = "lab";
  spec.detached = true;  // and so outlives its job, whose node may be the one that goes
  spec.max_restarts = -1;
  living(spec);
  const NodeId there = record(spec).node;
  head().place_no_more();
  head().node_lost(there, "it left");
  EXPECT_EQ(record(spec).phase, ActorPhase::kPending);
  advance(std::chrono::minutes(1));
  EXPECT_FALSE(links_.take<control::StartActor>())
      << "on " << (there == other ? "the first" : "the other") << " node, which leaves as well";
  EXPECT_EQ(record(spec).phase, ActorPhase::kPending);
}

TEST_F(HeadTest, KeysWakeTheirWaiters) {
  Answer waiting = ask(control::KvGet{"rank0", true});
  EXPECT_FALSE(waiting->has_value());
  ask(control::KvPut{"rank0", "10.0.0.1:5"});
  ASSERT_TRUE(status(waiting).ok());
  EXPECT_EQ(std::get<std::string>(***waiting), "10.0.0.1:5");
  Answer never = ask(control::KvGet{"rank1", true}, {}, {}, std::chrono::seconds(1));
  advance(std::chrono::milliseconds(1001));
  EXPECT_EQ(status(never).code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(HeadTest, JobsDoNotSeeEachOthersKeys) {
  JobId other = JobId::random();
  start_job(other);
  ask(control::KvPut{"k", "mine"});
  EXPECT_EQ(status(ask(control::KvGet{"k", false}, other)).code(), ErrorCode::kNotFound);
}

TEST_F(HeadTest, AddCounts) {
  auto sum = [&](std::int64_t amount) {
    return std::get<std::int64_t>(***ask(control::KvAdd{"n", amount}));
  };
  EXPECT_EQ(sum(2), 2);
  EXPECT_EQ(sum(-5), -3);
  ask(control::KvPut{"text", "abc"});
  EXPECT_EQ(status(ask(control::KvAdd{"text", 1})).code(), ErrorCode::kInvalidArgument);
  ask(control::KvPut{"n", "9223372036854775807"});
  EXPECT_EQ(status(ask(control::KvAdd{"n", 1})).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::get<std::int64_t>(***ask(control::KvDelete{"n"})), 1);
  EXPECT_EQ(std::get<std::int64_t>(***ask(control::KvDelete{"n"})), 0);
}

TEST_F(HeadTest, ValuesAreBounded) {
  EXPECT_EQ(status(ask(control::KvPut{"k", std::string((1 << 20) + 1, 'x')})).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(status(ask(control::KvPut{"", "v"})).code(), ErrorCode::kInvalidArgument);
}

TEST_F(HeadTest, GroupsGoFirstAndHoldTheirActors) {
  ActorSpec hog = living(4);
  GroupSpec spec{GroupId::random(), "g", GroupStrategy::kPack, {{{"CPU", 1}}}};
  Answer group = ask(control::CreateGroup{spec});
  ActorSpec inside = actor(0);
  inside.bundle = BundleSlot{spec.group, 0};
  Answer created = ask(control::CreateActor{inside});
  EXPECT_FALSE(group->has_value());
  EXPECT_FALSE(created->has_value());
  ask(control::ActorExited{hog.actor, incarnation(hog), {}});
  EXPECT_FALSE(group->has_value());  // its node has not said that it holds it
  EXPECT_EQ(reserved(), 1);
  EXPECT_TRUE(status(group).ok());
  auto start = links_.take<control::StartActor>();
  ASSERT_TRUE(start);
  start->answer(ControlAnswer{ActorAddress{}});
  EXPECT_TRUE(status(created).ok());
  EXPECT_TRUE(status(ask(control::RemoveGroup{spec.group})).ok());
  EXPECT_TRUE(links_.take<control::StopActor>());  // its bundle is given to others
}

TEST_F(HeadTest, AGroupThatDoesNotFitFailsAtItsDeadline) {
  living(4);
  Answer group =
      ask(control::CreateGroup{{GroupId::random(), "", GroupStrategy::kPack, {{{"CPU", 1}}}}}, {},
          {}, std::chrono::seconds(1));
  advance(std::chrono::milliseconds(1001));
  EXPECT_EQ(status(group).code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(head_.cluster_state().groups.empty());
}

TEST_F(HeadTest, LinesGoToTheNodeOfTheDriver) {
  NodeId other = join(1);
  LogLines lines;
  lines.job = job_;
  head_.handle_event(other, lines);
  ASSERT_EQ(links_.events.size(), 1u);
  EXPECT_EQ(links_.events[0].first, node_);
}

TEST_F(HeadTest, RefusesStrangersAndForeignRequests) {
  EXPECT_EQ(status(ask(control::QueryCluster{}, {}, NodeId::random())).code(),
            ErrorCode::kUnavailable);
  EXPECT_EQ(status(ask(control::FetchFile{"x", 0})).code(), ErrorCode::kUnimplemented);
}

TEST_F(HeadTest, RemembersABoundedNumberOfDeadActors) {
  const std::size_t kept = HeadOptions().dead_kept;
  for (std::size_t i = 0; i < kept + 50; ++i) {
    ActorSpec spec = living(1);
    ask(control::ActorExited{spec.actor, incarnation(spec), {}});
    links_.events.clear();
  }
  EXPECT_EQ(head_.tables().actors().all().size(), kept + 50)
      << "callers of the first ones may be about to ask for the cause";
  EXPECT_LE(head_.next_tick(), now_ + std::chrono::seconds(6));
  advance(std::chrono::seconds(6));
  EXPECT_EQ(head_.tables().actors().all().size(), kept);
}

TEST_F(HeadTest, TheEndOfASharedProcessIsOneEvent) {
  control::ActorsExited exited;
  std::vector<ActorSpec> specs;
  for (int i = 0; i < 100; ++i) {
    specs.push_back(actor(0));
    specs.back().max_restarts = i % 2;
    living(specs.back());
    exited.actors.push_back({specs.back().actor, incarnation(specs.back())});
  }
  exited.cause.text = "killed by SIGSEGV";
  links_.events.clear();
  exited.actors.push_back({ActorId::random(), 1});
  ask(control::ActorsExited(exited), {}, join(1));
  EXPECT_TRUE(links_.events.empty()) << "not the process of that node";
  ask(control::ActorsExited(exited));
  ASSERT_EQ(links_.events.size(), 2u) << "one for each node";
  EXPECT_EQ(std::get<control::ActorsDied>(links_.events[0].second).actors.size(), 50u);
  for (int i = 0; i < 100; ++i) {
    const ActorRecord& record =
        *head_.tables().actors().find(specs[static_cast<std::size_t>(i)].actor);
    EXPECT_EQ(record.phase, i % 2 == 0 ? ActorPhase::kDead : ActorPhase::kStarting);
    EXPECT_EQ(record.death.text, "killed by SIGSEGV");
  }
}

}  // namespace
}  // namespace runtime
