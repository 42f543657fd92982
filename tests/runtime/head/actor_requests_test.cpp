// Requests of clients about actors. The manager keeps the actors' lives; the test plays its nodes.
#include "runtime/head/actor_requests.h"

#include "parts_fixture.h"
#include "queue_hooks.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ActorRequestsTest : public PartTest {
 protected:
  ActorRequestsTest() : node_(add_node(4)), job_(add_job(node_)) {}

  static ActorSpec counter(const std::string& name = "") {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Counter";
    spec.name = name;
    spec.resources = {{"CPU", 1}};
    return spec;
  }
  template <class Body>
  Answer ask(Body body, JobId job = {}, std::chrono::milliseconds timeout = 10s) {
    return PartTest::ask(requests_, std::move(body), node_, job.is_none() ? job_ : job, timeout);
  }
  /// The same request once more, to a head that knows that it began about that incarnation.
  template <class Body>
  Answer ask_again(Body body, std::uint64_t about) {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    const HeadCall call{node_, job_, time_ + 10s, RequestId::random(), true, about};
    requests_.serve(call, body,
                    [answer](Result<ControlAnswer> said) { *answer = std::move(said); });
    return answer;
  }
  Answer create(const ActorSpec& spec, JobId job = {}) {
    return ask(control::CreateActor{spec}, job);
  }
  Status refusal(const ActorSpec& spec, JobId job = {}) { return status(create(spec, job)); }
  /// The next start, as its node would answer it.
  void answer_start() {
    auto start = links_.take<control::StartActor>();
    ASSERT_TRUE(start);
    ActorAddress address;
    address.node = start->node;
    address.pid = 100;
    start->answer(ControlAnswer{address});
  }
  ActorSpec living(const ActorSpec& spec) {
    const Answer created = create(spec);
    answer_start();
    EXPECT_TRUE(status(created).ok()) << status(created).message();
    return spec;
  }
  ActorSpec living(const std::string& name = "", std::int32_t max_restarts = 0) {
    ActorSpec spec = counter(name);
    spec.max_restarts = max_restarts;
    return living(spec);
  }
  void exit(const ActorSpec& spec) {
    PartTest::ask(
        actors_,
        control::ActorExited{spec.actor, record(spec).incarnation, {"it crashed", 100, -1, 9, ""}},
        node_);
  }
  std::optional<control::StopActor> stop_sent() {
    auto sent = links_.take<control::StopActor>();
    if (!sent) return std::nullopt;
    return std::get<control::StopActor>(sent->request.body);
  }
  template <class T>
  static T said(const Answer& answer) {
    EXPECT_TRUE(status(answer).ok()) << status(answer).message();
    return status(answer).ok() ? std::get<T>(***answer) : T();
  }
  static bool waits(const Answer& answer) { return !answer->has_value(); }
  /// A job whose driver has a namespace that others can name.
  JobId job_in(const std::string& name_space) {
    JobInfo info;
    info.job = JobId::random();
    info.node = node_;
    DriverInfo driver;
    driver.name_space = name_space;
    context_.commit(command::StartJob{info, driver});
    return info.job;
  }

  const NodeId node_;
  const JobId job_;
  ActorWaiters waiters_{context_};
  PlacementQueue queue_{context_, hooks_of(actors_)};
  RequestLedger ledger_{context_};
  ActorManager actors_{context_, queue_, waiters_, {[](const ActorRecord&) {}, [](JobId) {}}};
  ActorRequests requests_{context_, ledger_, queue_, waiters_, actors_};
};

// -- Creation

TEST_F(ActorRequestsTest, ACreationIsAnsweredOnceTheActorRuns) {
  const ActorSpec spec = counter();
  const Answer answer = create(spec);
  EXPECT_TRUE(waits(answer));
  answer_start();
  EXPECT_EQ(said<ActorAddress>(answer).actor, spec.actor);
}

TEST_F(ActorRequestsTest, ACreationThatComesAgainJoinsTheFirst) {
  const ActorSpec spec = counter();
  const Answer first = create(spec), again = create(spec);
  EXPECT_EQ(refusal(spec, add_job(node_)).code(), ErrorCode::kInvalidArgument) << "another job's";
  answer_start();
  EXPECT_FALSE(links_.take<control::StartActor>()) << "started twice";
  EXPECT_EQ(said<ActorAddress>(first), said<ActorAddress>(again));
  EXPECT_TRUE(status(create(spec)).ok()) << "it runs";
  exit(spec);
  EXPECT_EQ(status(create(spec)).code(), ErrorCode::kActorDied);
}

TEST_F(ActorRequestsTest, WhoAsksAgainMayWaitForLonger) {
  ActorSpec large = counter();
  large.resources = {{"CPU", 100}};
  const Answer first = create(large);
  const Answer again = ask(control::CreateActor{large}, {}, 20s);
  time_ += 10s;
  queue_.tick(time_);
  EXPECT_TRUE(waits(again));
  EXPECT_EQ(record(large).phase, ActorPhase::kPending);
  waiters_.tick(time_ + 1s);
  EXPECT_EQ(status(first).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(status(first).message().find("no node has CPU"), std::string::npos);
  time_ += 10s;
  queue_.tick(time_);
  EXPECT_EQ(status(again).code(), ErrorCode::kResourceExhausted);
}

TEST_F(ActorRequestsTest, WhatCannotBeIsRefused) {
  ActorSpec without_id = counter(), classless = counter();
  without_id.actor = {};
  classless.class_name.clear();
  EXPECT_EQ(refusal(without_id).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(classless).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(counter(), JobId::random()).code(), ErrorCode::kInvalidArgument);
  ActorSpec unnamed = counter();
  unnamed.get_if_exists = true;
  EXPECT_EQ(refusal(unnamed).code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(tables_.actors().all().empty()) << "nothing is left of them";
  EXPECT_TRUE(links_.requests.empty());
}

TEST_F(ActorRequestsTest, TheNumberThatWaitForAPlaceIsLimited) {
  options_.pending_max = 1;
  ActorSpec large = counter(), another = counter();
  large.resources = another.resources = {{"CPU", 100}};
  create(large);
  EXPECT_EQ(refusal(another).code(), ErrorCode::kResourceExhausted);
}

TEST_F(ActorRequestsTest, ANameIsUniqueInItsNamespaceWhileTheActorLives) {
  const ActorSpec first = living("counter");
  EXPECT_EQ(record(first).spec.name_space, tables_.jobs().name_space(job_)) << "the job's";
  const Status taken = refusal(counter("counter"));
  EXPECT_EQ(taken.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(taken.message().find(first.actor.short_hex()), std::string::npos) << taken.message();
  ActorSpec elsewhere = counter("counter");
  elsewhere.name_space = "another";
  EXPECT_TRUE(waits(create(elsewhere)));
  exit(first);
  EXPECT_TRUE(waits(create(counter("counter"))));
}

TEST_F(ActorRequestsTest, GetIfExistsGivesTheLivingOneOfThatClass) {
  const ActorSpec first = living("counter");
  ActorSpec wanted = counter("counter");
  wanted.get_if_exists = true;
  EXPECT_EQ(said<ActorAddress>(create(wanted)).actor, first.actor);
  EXPECT_EQ(tables_.actors().find(wanted.actor), nullptr);
  ActorSpec other_class = wanted;
  other_class.class_name = "Adder";
  EXPECT_EQ(refusal(other_class).code(), ErrorCode::kInvalidArgument) << "its name is taken";
  exit(first);
  const Answer made = create(wanted), joined = create([&] {
                                        ActorSpec same = wanted;
                                        same.actor = ActorId::random();
                                        return same;
                                      }());
  answer_start();
  EXPECT_EQ(said<ActorAddress>(made).actor, wanted.actor);
  EXPECT_EQ(said<ActorAddress>(joined).actor, wanted.actor) << "that was being made";
}

TEST_F(ActorRequestsTest, ADetachedActorCanBeFoundAndOutlivesItsJob) {
  ActorSpec detached = counter();
  detached.detached = true;
  detached.owner = ActorId::random();
  EXPECT_EQ(refusal(detached).code(), ErrorCode::kInvalidArgument) << "without a name";
  detached.name = "counter";
  EXPECT_EQ(refusal(detached).code(), ErrorCode::kInvalidArgument) << "in the job's own namespace";
  EXPECT_TRUE(waits(create(detached, job_in("shared"))));
  EXPECT_EQ(record(detached).spec.name_space, "shared");
  EXPECT_TRUE(record(detached).spec.outlives_job);
  EXPECT_TRUE(record(detached).spec.owner.is_none()) << "it has none";
  ActorSpec named = counter("counter");
  named.detached = true;
  named.name_space = "named";
  EXPECT_TRUE(waits(create(named)));
}

TEST_F(ActorRequestsTest, ADetachedActorStandsOnADetachedGroupOnly) {
  ActorSpec spec = counter("counter");
  spec.detached = true;
  spec.name_space = "space";
  spec.bundle = BundleSlot{add_group(job_, 1).group, 0};
  EXPECT_EQ(refusal(spec).code(), ErrorCode::kInvalidArgument);
  GroupSpec lasting;
  lasting.group = GroupId::random();
  lasting.detached = true;
  context_.commit(command::AddGroup{job_, lasting});
  spec.bundle->group = lasting.group;
  EXPECT_TRUE(waits(create(spec)));
}

TEST_F(ActorRequestsTest, WhatItsOwnerCannotEndIsNotCreated) {
  const ActorSpec owner = living("", 1);
  ActorSpec owned = counter();
  owned.owner = owner.actor;
  owned.owner_incarnation = record(owner).incarnation + 1;
  EXPECT_EQ(refusal(owned).code(), ErrorCode::kCancelled) << "of another incarnation";
  owned.owner_incarnation = record(owner).incarnation;
  EXPECT_TRUE(waits(create(owned)));
  ActorSpec late = owned;
  late.actor = ActorId::random();
  context_.commit(command::ActorEnds{owner.actor});
  EXPECT_EQ(refusal(late).code(), ErrorCode::kCancelled) << "it is being ended";
  late.owner = ActorId::random();
  EXPECT_EQ(refusal(late).code(), ErrorCode::kCancelled) << "it is not known";
}

TEST_F(ActorRequestsTest, WhatADetachedActorOwnsOutlivesTheJobWithIt) {
  ActorSpec owner = counter("owner");
  owner.detached = true;
  owner.name_space = "space";
  living(owner);
  context_.commit(command::EndJob{job_, JobOutcome::kSucceeded});
  ActorSpec owned = counter();
  owned.owner = owner.actor;
  owned.owner_incarnation = record(owner).incarnation;
  EXPECT_TRUE(waits(create(owned)));
  EXPECT_TRUE(record(owned).spec.outlives_job);
  EXPECT_EQ(refusal(counter()).code(), ErrorCode::kInvalidArgument) << "others need a running job";
}

// -- Questions

TEST_F(ActorRequestsTest, AnActorIsResolvedByIdOrByName) {
  const ActorSpec spec = counter("counter");
  create(spec);
  const Answer by_id = ask(control::ResolveActor{spec.actor, "", ""});
  const Answer by_name = ask(control::ResolveActor{{}, "counter", ""});
  EXPECT_TRUE(waits(by_id)) << "it is being made";
  answer_start();
  EXPECT_EQ(said<ActorAddress>(by_id).actor, spec.actor);
  EXPECT_EQ(said<ActorAddress>(by_name).actor, spec.actor);
  const auto resolve = [&](ActorId actor, const char* name, const char* name_space) {
    return status(ask(control::ResolveActor{actor, name, name_space})).code();
  };
  EXPECT_EQ(resolve({}, "counter", "another"), ErrorCode::kNotFound);
  EXPECT_EQ(resolve({}, "adder", ""), ErrorCode::kNotFound);
  EXPECT_EQ(resolve(ActorId::random(), "", ""), ErrorCode::kNotFound);
  exit(spec);
  EXPECT_EQ(resolve({}, "counter", ""), ErrorCode::kNotFound) << "its name is free again";
  EXPECT_EQ(resolve(spec.actor, "", ""), ErrorCode::kActorDied);
}

TEST_F(ActorRequestsTest, AQueryWaitsAWhileForTheDeathOfAnActor) {
  const ActorSpec spec = living(), other = living();
  const Answer answer = ask(control::QueryActor{spec.actor, record(spec).incarnation});
  EXPECT_TRUE(waits(answer));
  exit(spec);
  EXPECT_EQ(said<ActorState>(answer).phase, ActorPhase::kDead);
  EXPECT_EQ(said<ActorState>(ask(control::QueryActor{spec.actor})).phase, ActorPhase::kDead)
      << "and at once for one that is dead";
  const Answer lives = ask(control::QueryActor{other.actor});
  EXPECT_EQ(waiters_.next_tick(), time_ + options_.death_wait);
  waiters_.tick(time_ + options_.death_wait);
  EXPECT_EQ(said<ActorState>(lives).phase, ActorPhase::kAlive);
  EXPECT_EQ(said<ActorState>(ask(control::QueryActor{other.actor, 999})).phase, ActorPhase::kAlive)
      << "another incarnation than the one asked about";
  EXPECT_EQ(status(ask(control::QueryActor{ActorId::random()})).code(), ErrorCode::kNotFound);
}

TEST_F(ActorRequestsTest, AWatchIsAnsweredByTheNextChange) {
  const ActorSpec spec = counter();
  create(spec);
  const std::uint64_t version = record(spec).version;
  EXPECT_EQ(said<ActorState>(ask(control::WatchActor{spec.actor, version - 1})).version, version);
  const Answer watch = ask(control::WatchActor{spec.actor, version});
  EXPECT_TRUE(waits(watch));
  answer_start();
  EXPECT_EQ(said<ActorState>(watch).phase, ActorPhase::kAlive);
  EXPECT_EQ(status(ask(control::WatchActor{ActorId::random(), 0})).code(), ErrorCode::kNotFound);
}

TEST_F(ActorRequestsTest, ANoticeGoesToTheProcessThatBuildsTheActor) {
  const ActorSpec spec = counter("counter");
  create(spec);
  EXPECT_TRUE(status(ask(control::ConstructorAwaited{{}, "counter", "", "notice"})).ok());
  auto sent = links_.take<control::ConstructorAwaited>();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->node, record(spec).node);
  const auto& body = std::get<control::ConstructorAwaited>(sent->request.body);
  EXPECT_EQ(body.actor, spec.actor) << "found by its name";
  EXPECT_EQ(body.notice, "notice");
  EXPECT_TRUE(status(ask(control::ConstructorAwaited{spec.actor, "", "", ""})).ok());
  EXPECT_TRUE(links_.take<control::ConstructorAwaited>());
  answer_start();
  EXPECT_TRUE(status(ask(control::ConstructorAwaited{spec.actor, "", "", ""})).ok());
  EXPECT_FALSE(links_.take<control::ConstructorAwaited>()) << "it is built";
  const std::string long_notice(control::ConstructorAwaited::kNoticeBytesMax + 1, 'x');
  EXPECT_EQ(status(ask(control::ConstructorAwaited{spec.actor, "", "", long_notice})).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(ActorRequestsTest, StateIsSavedByThePresentIncarnationOnly) {
  options_.state_bytes_max = 4;
  const ActorSpec spec = living("", 1);
  const std::uint64_t first = record(spec).incarnation;
  const auto save = [&](std::uint64_t incarnation, const char* state) {
    return status(ask(control::SaveState{spec.actor, incarnation, state}));
  };
  EXPECT_TRUE(save(first, "good").ok());
  EXPECT_EQ(save(first, "large").code(), ErrorCode::kResourceExhausted);
  exit(spec);
  answer_start();
  EXPECT_EQ(save(first, "old").code(), ErrorCode::kCancelled);
  EXPECT_EQ(*record(spec).spec.saved_state, "good");
  EXPECT_TRUE(save(record(spec).incarnation, "new").ok());
  exit(spec);
  EXPECT_EQ(save(record(spec).incarnation, "dead").code(), ErrorCode::kCancelled);
}

// -- Ends

TEST_F(ActorRequestsTest, AKillIsAnsweredWhenTheProcessIsGone) {
  const ActorSpec spec = living("", 1);
  const Answer answer = ask(control::KillActor{spec.actor});
  const auto stop = stop_sent();
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->incarnation, record(spec).incarnation);
  EXPECT_EQ(stop->grace, 0ms);
  EXPECT_FALSE(stop->drain);
  EXPECT_TRUE(waits(answer));
  exit(spec);
  EXPECT_TRUE(status(answer).ok());
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead) << "it does not restart";
  EXPECT_TRUE(status(ask(control::KillActor{spec.actor})).ok()) << "dead already";
  EXPECT_EQ(status(ask(control::KillActor{ActorId::random()})).code(), ErrorCode::kNotFound);
}

TEST_F(ActorRequestsTest, AKillThatTakesTooLongIsSaidToBe) {
  const ActorSpec spec = living();
  const Answer answer = ask(control::KillActor{spec.actor});
  waiters_.tick(waiters_.next_tick());
  EXPECT_EQ(status(answer).code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(ActorRequestsTest, AKillAsAfterACrashLeavesTheRestart) {
  const ActorSpec spec = living("", 1);
  const Answer answer = ask(control::KillActor{spec.actor, true});
  EXPECT_TRUE(stop_sent());
  exit(spec);
  EXPECT_TRUE(status(answer).ok());
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting);
}

TEST_F(ActorRequestsTest, OneThatWaitsForItsPlaceIsKilledAtOnce) {
  ActorSpec large = counter();
  large.resources = {{"CPU", 100}};
  const Answer created = create(large);
  EXPECT_TRUE(status(ask(control::KillActor{large.actor, true})).ok());
  EXPECT_EQ(status(created).code(), ErrorCode::kCancelled);
  EXPECT_EQ(record(large).phase, ActorPhase::kDead);
  EXPECT_FALSE(stop_sent());
  EXPECT_EQ(queue_.actors().size(), 0u);
}

TEST_F(ActorRequestsTest, OneThatWaitsForItsRestartIsAsGoodAsKilled) {
  const ActorSpec spec = living("", -1);
  exit(spec);
  answer_start();
  exit(spec);  // the second restart is held back
  ASSERT_EQ(record(spec).phase, ActorPhase::kPending);
  EXPECT_TRUE(status(ask(control::KillActor{spec.actor, true})).ok());
  EXPECT_EQ(record(spec).phase, ActorPhase::kPending) << "it comes back as it would have";
  EXPECT_TRUE(status(ask(control::KillActor{spec.actor})).ok());
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
}

TEST_F(ActorRequestsTest, ARepeatedKillLeavesTheNextIncarnationAlone) {
  const ActorSpec spec = living("", -1);
  const std::uint64_t killed = record(spec).incarnation;
  exit(spec);
  answer_start();
  EXPECT_TRUE(status(ask_again(control::KillActor{spec.actor, true}, killed)).ok());
  EXPECT_TRUE(status(ask_again(control::TerminateActor{spec.actor, true}, killed)).ok());
  EXPECT_FALSE(stop_sent());
  const Answer waiting = ask_again(control::KillActor{spec.actor, true}, record(spec).incarnation);
  EXPECT_TRUE(stop_sent());
  EXPECT_TRUE(waits(waiting));
}

TEST_F(ActorRequestsTest, ATerminatedActorServesWhatWaitsAndEnds) {
  const ActorSpec spec = living("", -1);
  const Answer answer = ask(control::TerminateActor{spec.actor}, {}, 7s);
  const auto stop = stop_sent();
  ASSERT_TRUE(stop);
  EXPECT_TRUE(stop->drain);
  EXPECT_EQ(stop->grace, 7s);
  waiters_.tick(time_ + 7s);
  EXPECT_TRUE(waits(answer)) << "it is killed then, which takes a moment";
  exit(spec);
  EXPECT_TRUE(status(answer).ok());
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
  EXPECT_TRUE(status(ask(control::TerminateActor{spec.actor})).ok());
  EXPECT_EQ(status(ask(control::TerminateActor{ActorId::random()})).code(), ErrorCode::kNotFound);
}

TEST_F(ActorRequestsTest, AnActorThatIsBeingBuiltIsKilledInstead) {
  const ActorSpec spec = counter();
  create(spec);
  ask(control::TerminateActor{spec.actor});
  const auto stop = stop_sent();
  ASSERT_TRUE(stop);
  EXPECT_FALSE(stop->drain);
  EXPECT_TRUE(record(spec).ending);
}

TEST_F(ActorRequestsTest, ARestartOnRequestCountsAsOne) {
  const ActorSpec spec = living("", 1);
  EXPECT_TRUE(waits(ask(control::TerminateActor{spec.actor, true})));
  EXPECT_TRUE(stop_sent());
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting);
  EXPECT_TRUE(status(ask(control::TerminateActor{spec.actor, true})).ok())
      << "as good as started again";
  EXPECT_FALSE(stop_sent());
  answer_start();
  const Status used = status(ask(control::TerminateActor{spec.actor, true}));
  EXPECT_EQ(used.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(used.message().find("1 of 1 restarts"), std::string::npos) << used.message();
  EXPECT_FALSE(stop_sent());
  exit(spec);
  EXPECT_EQ(status(ask(control::TerminateActor{spec.actor, true})).code(), ErrorCode::kActorDied);
}

}  // namespace
}  // namespace runtime
