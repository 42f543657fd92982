// A call's way to its actor: limits of time, order, and what becomes of calls whose actor is ended.
#include <atomic>
#include <thread>

#include "call_actors.h"
#include "cluster_fixture.h"
#include "tests/support/gate.h"

namespace runtime::test {
namespace {

class CallsTest : public ClusterTest {};

// -- Limits of time

TEST_F(CallsTest, AMethodsRegisteredTimeoutHoldsWhateverTheCallerSays) {
  auto actor = make<Timed>();
  EXPECT_LE(get(actor.call(&Timed::hurried, 0)), 300) << "the method sees it";
  EXPECT_GT(get(actor.call(&Timed::hurried, 0)), 0);
  EXPECT_GT(get(actor.call(&Timed::calm, 0)), 1'000'000) << "the other methods have their hour";
  expect_failure(rt_->get(actor.call(CallOptions{.timeout = 1h}, &Timed::hurried, 20'000)).status(),
                 ErrorCode::kDeadlineExceeded, {"hurried", "300 ms"});
}

TEST_F(CallsTest, TheTightestLimitHolds) {
  ActorOptions options;
  options.method_timeouts = {{"calm", 200ms}, {"hurried", 10min}};
  auto actor = make<Timed>(options);
  EXPECT_LE(get(actor.call(&Timed::calm, 0)), 200);
  EXPECT_LE(get(actor.call(&Timed::hurried, 0)), 300)
      << "the class's limit is tighter than the actor's";
  EXPECT_LE(get(actor.call(CallOptions{.timeout = 100ms}, &Timed::calm, 0)), 100);
  expect_failure(rt_->get(actor.call(CallOptions{.timeout = 50ms}, &Timed::calm, 20'000)).status(),
                 ErrorCode::kDeadlineExceeded, {"calm", "50 ms"});
  expect_failure(rt_->get(actor.call(&Timed::calm, 20'000)).status(), ErrorCode::kDeadlineExceeded,
                 {"calm", "200 ms"});
}

TEST_F(CallsTest, AnActorsLimitsHoldForCallersThatFindIt) {
  ActorOptions options{.name = "timed"};
  options.method_timeouts = {{"calm", 200ms}};
  auto actor = make<Timed>(options);
  auto other = make<Timed>();
  expect_failure(rt_->get(other.call(&Timed::hurry_named, "timed", 20'000)).status(),
                 ErrorCode::kDeadlineExceeded, {"calm", "200 ms"});
  EXPECT_LE(get(other.call(&Timed::inner, actor, false)), 200)
      << "and for those who are given a handle";
}

TEST_F(CallsTest, ACallHandsItsTimeOnWhenAskedTo) {
  auto outer = make<Timed>();
  auto inner = make<Timed>();
  EXPECT_GT(get(outer.call(CallOptions{.timeout = 10s}, &Timed::inner, inner, false)), 1'000'000);
  EXPECT_LE(get(outer.call(CallOptions{.timeout = 10s}, &Timed::inner, inner, true)), 10'000);
  CallOptions past;
  for (const Deadline until : {std::chrono::steady_clock::now() - 1s, Deadline::min()}) {
    past.until = until;
    expect_failure(rt_->get(inner.call(past, &Timed::calm, 0)).status(),
                   ErrorCode::kDeadlineExceeded, {"calm"});
  }
  expect_failure(rt_->get(inner.call(CallOptions{.timeout = -5s}, &Timed::calm, 0)).status(),
                 ErrorCode::kDeadlineExceeded, {"calm"});
}

TEST_F(CallsTest, TimeoutsOfMethodsThatAreNoneAreRefused) {
  ActorOptions options;
  options.method_timeouts = {{"clam", 200ms}};
  expect_failure(rt_->spawn<Timed>(options).status(), ErrorCode::kInvalidArgument,
                 {"Timed", "clam"});
  options.method_timeouts = {{"calm", 0ms}};
  expect_failure(rt_->spawn<Timed>(options).status(), ErrorCode::kInvalidArgument, {"calm"});
}

// -- Order

TEST_F(CallsTest, ACallWaitsForItsArgumentsAndThoseBehindItWaitToo) {
  auto target = make<Sequence>({.name = "target"});
  auto slow = make<Patient>();
  auto caller = make<TwoCalls>();
  EXPECT_EQ(get(caller.call(&TwoCalls::through, target, slow)), (std::vector<int>{500, 1}));
}

TEST_F(CallsTest, OutOfOrderACallWhoseArgumentsAreThereOvertakes) {
  auto target = make<Sequence>({.name = "target", .out_of_order = true});
  auto slow = make<Patient>();
  auto late = slow.call(&Patient::block, 500);
  auto first = target.call(&Sequence::add, late);
  std::vector<ObjectRef<int>> others;
  for (int i = 0; i < 100; ++i) others.push_back(target.call(&Sequence::add, i));
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(get(others[static_cast<std::size_t>(i)]), i + 1)
        << "among themselves they keep their order";
  EXPECT_FALSE(first.is_ready());
  EXPECT_EQ(get(first), 101);
}

TEST_F(CallsTest, OutOfOrderHoldsForEveryCaller) {
  auto slow = make<Patient>();
  auto caller = make<TwoCalls>();
  auto given = make<Sequence>({.out_of_order = true});
  EXPECT_EQ(get(caller.call(&TwoCalls::through, given, slow)), (std::vector<int>{1, 500}));
  auto named = make<Sequence>({.name = "target", .out_of_order = true});
  EXPECT_EQ(get(caller.call(&TwoCalls::through_name, "target", slow)), (std::vector<int>{1, 500}));
}

TEST_F(CallsTest, OutOfOrderCallsThatWaitEndWithTheirTimeTheirCancellationAndTheActor) {
  auto target = make<Sequence>({.out_of_order = true});
  auto slow = make<Patient>();
  auto late = slow.call(&Patient::block, 3000);
  ASSERT_EQ(get(target.call(&Sequence::add, 1)), 1);
  auto timed = target.call(CallOptions{.timeout = 100ms}, &Sequence::add, late);
  auto cancelled = target.call(&Sequence::add, late);
  auto orphaned = target.call(&Sequence::add, late);
  expect_failure(rt_->get(timed).status(), ErrorCode::kDeadlineExceeded,
                 {"add", "100 ms", "argument"});
  ASSERT_TRUE(rt_->cancel(cancelled).ok());
  expect_failure(rt_->get(cancelled).status(), ErrorCode::kCancelled, {"before it was sent"});
  ASSERT_TRUE(rt_->kill(target).ok());
  expect_failure(rt_->get(orphaned, 20s).status(), ErrorCode::kActorDied, {"killed on request"});
}

// -- Ends

TEST_F(CallsTest, TerminateDoesNotOvertakeItsCallersCalls) {
  for (int round = 0; round < 5; ++round) {
    auto actor = make<Sequence>();
    const ActorHandle<Sequence> copy = actor;
    std::vector<ObjectRef<int>> calls;
    for (int i = 0; i < 200; ++i)
      calls.push_back(
          (i % 2 ? actor : copy).call(&Sequence::add, i));  // the connection is only being made
    const Status ended = rt_->terminate(actor);
    ASSERT_TRUE(ended.ok()) << ended.to_string();
    for (int i = 0; i < 200; ++i) ASSERT_EQ(get(calls[static_cast<std::size_t>(i)]), i + 1);
    expect_failure(rt_->get(copy.call(&Sequence::add, 1)).status(), ErrorCode::kActorDied,
                   {"terminated"});
  }
}

TEST_F(CallsTest, TerminateWaitsForCallsWhoseArgumentsAreNotThereYet) {
  auto actor = make<Sequence>();
  auto slow = make<Patient>();
  auto call = actor.call(&Sequence::add, slow.call(&Patient::block, 300));
  ASSERT_TRUE(rt_->terminate(actor).ok());
  EXPECT_EQ(get(call), 1);
}

TEST_F(CallsTest, SeveralMayTerminateAnActorAtOnce) {
  auto actor = make<Sequence>();
  auto paused = actor.call(&Sequence::pause, 300);
  std::vector<std::thread> ending;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i)
    ending.emplace_back([&] { EXPECT_TRUE(rt_->terminate(actor, 3min).ok()); });
  for (std::thread& thread : ending) thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s)
      << "none of them waits for its own deadline";
  EXPECT_TRUE(rt_->get(paused).ok());
}

TEST_F(CallsTest, CallsDuringATerminationAreTold) {
  auto actor = make<Sequence>();
  auto paused = actor.call(&Sequence::pause, 500);
  std::thread ending([&] { EXPECT_TRUE(rt_->terminate(actor).ok()); });
  Status told;
  EXPECT_TRUE(eventually([&] {
    told = rt_->get(actor.call(&Sequence::add, 1), 20s).status();
    return !told.ok();
  }));
  expect_failure(told, ErrorCode::kActorDied, {"terminated"});
  ending.join();
  EXPECT_TRUE(rt_->get(paused).ok());
}

TEST_F(CallsTest, AnActorWatchesItsChild) {
  auto sentry = make<Sentry>();
  auto child = get(sentry.call(&Sentry::raise, 1));
  const auto seen = [&] { return get(sentry.call(&Sentry::seen)); };
  ASSERT_EQ(::kill(get(child.call(&Patient::pid)), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return seen().size() == 2; }));
  auto second = get(sentry.call(&Sentry::raise,
                                0));  // replaces the watch: the first child is not watched any more
  ASSERT_TRUE(rt_->kill(child).ok());
  ASSERT_EQ(::kill(second.pid(), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return seen().size() == 3; }));
  const auto all = seen();
  EXPECT_NE(all[0].find("restarting: killed by SIGKILL"), std::string::npos) << all[0];
  EXPECT_EQ(all[1], "alive");
  EXPECT_NE(all[2].find("dead: "), std::string::npos) << all[2];
  EXPECT_NE(all[2].find("killed by SIGKILL"), std::string::npos) << all[2];
}

TEST_F(CallsTest, AnEndCanBeAwaitedLikeAResult) {
  auto actor = make<Patient>({.max_restarts = 1});
  ObjectRef<ActorDeath> end = rt_->when_dead(actor);
  auto sentry = make<Sentry>();
  auto elsewhere = sentry.call(&Sentry::wait_for_end, actor);
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Patient::pid)).ok(); }));
  EXPECT_FALSE(end.is_ready()) << "it runs again";
  EXPECT_EQ(rt_->get(end, 10ms).status().code(), ErrorCode::kDeadlineExceeded);
  ASSERT_EQ(::kill(get(actor.call(&Patient::pid)), SIGKILL), 0);
  for (const auto& death :
       {rt_->get(end, 20s), rt_->get(elsewhere, 20s), rt_->get(rt_->when_dead(actor), 20s)}) {
    ASSERT_TRUE(death.ok()) << death.status().to_string();
    expect_failure(death->status, ErrorCode::kActorDied, {"Patient", "SIGKILL"});
    EXPECT_EQ(death->signal, SIGKILL);
    EXPECT_EQ(death->restarts, 1u);
  }
}

TEST_F(CallsTest, AForcedCancelRestartsTheActorByItsPolicy) {
  auto actor = make<Patient>({.max_restarts = 1, .max_task_retries = 1});
  const int first = get(actor.call(&Patient::pid));
  const support::Gate gate(folder_.file("gate"));
  auto stuck = actor.call(&Patient::pass, gate.path());
  auto retried = actor.call(&Patient::block, 1);
  CallOptions once;
  once.max_task_retries = 0;
  auto lost = actor.call(once, &Patient::block, 2);
  ASSERT_TRUE(gate.is_reached());
  ASSERT_TRUE(has_in_line("Patient", 2));
  ASSERT_TRUE(rt_->cancel(stuck, CancelMode::kForce).ok());
  expect_failure(rt_->get(stuck, 20s).status(), ErrorCode::kCancelled, {"pass", "force"});
  EXPECT_EQ(get(retried), 1) << "sent again to the next incarnation";
  expect_failure(rt_->get(lost, 20s).status(), ErrorCode::kActorDied,
                 {"block", "SIGKILL", "being restarted"});
  EXPECT_NE(get(actor.call(&Patient::pid)), first);
}

TEST_F(CallsTest, AForcedCancelOfACallInLineEndsThatCallOnly) {
  auto actor = make<Patient>();
  const int pid = get(actor.call(&Patient::pid));
  const support::Gate gate(folder_.file("gate"));
  auto running = actor.call(&Patient::pass, gate.path());
  auto waiting = actor.call(&Patient::block, 60'000);
  ASSERT_TRUE(gate.is_reached());
  ASSERT_TRUE(has_in_line("Patient", 1));
  ASSERT_TRUE(rt_->cancel(waiting, CancelMode::kForce).ok());
  expect_failure(rt_->get(waiting, 20s).status(), ErrorCode::kCancelled, {"before it ran"});
  gate.open();
  EXPECT_EQ(get(running), 1);
  EXPECT_EQ(get(actor.call(&Patient::pid)), pid);
}

}  // namespace
}  // namespace runtime::test
