// States that actors save, and get back when they are started again.
#include "cluster_fixture.h"

#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

class StateTest : public ClusterTest {
 protected:
  ActorHandle<Tally> tally(ActorOptions options, int start = 0) {
    auto made = rt_->spawn<Tally>(options, start);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<Tally>());
  }
};

TEST_F(StateTest, WhatWasSavedIsBackAfterAKill) {
  auto actor = tally({.max_restarts = 2}, 10);
  EXPECT_EQ(get(actor.call(&Tally::add, 5)), 15);
  const Status saved = rt_->save_state(actor);
  ASSERT_TRUE(saved.ok()) << saved.to_string();
  EXPECT_EQ(get(actor.call(&Tally::add, 100)), 115) << "not saved";
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Tally::total)).value_or(0) == 15; }));
  EXPECT_EQ(get(actor.call(&Tally::restored)), 1)
      << "the constructor ran again, then restore_state()";
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Tally::total)).value_or(0) == 15; }))
      << "and in every later life";
}

TEST_F(StateTest, WithoutASavedStateARestartRunsTheConstructor) {
  auto actor = tally({.max_restarts = 1}, 10);
  EXPECT_EQ(get(actor.call(&Tally::add, 5)), 15);
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Tally::total)).value_or(0) == 10; }));
  EXPECT_EQ(get(actor.call(&Tally::restored)), 0);
}

TEST_F(StateTest, SavingTakesItsTurnBehindEarlierCalls) {
  auto actor = tally({.max_restarts = 1});
  for (int i = 0; i < 1000; ++i) (void)actor.call(&Tally::add, 1);
  ASSERT_TRUE(rt_->save_state(actor).ok());
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Tally::total)).value_or(0) == 1000; }));
}

TEST_F(StateTest, NothingHalfSavedIsEverRestored) {
  constexpr std::uint64_t kNumbers = 100'000;  // 800 kB: on its way for a while
  auto actor = tally({.max_restarts = -1});
  std::int64_t acknowledged = 0;
  for (int life = 0; life < 4; ++life) {
    for (int i = 0; i < 3; ++i) {
      auto saved = rt_->get(actor.call(&Tally::grow_and_save, kNumbers), 20s);
      ASSERT_TRUE(saved.ok()) << saved.status().to_string();
      acknowledged = *saved;
    }
    auto torn = actor.call(&Tally::grow_and_save, kNumbers);
    support::pace(std::chrono::microseconds(700 * life));  // each time at another point of saving
    ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
    (void)rt_->get(torn, 20s);
    std::int64_t restored = -2;
    ASSERT_TRUE(eventually([&] {
      restored = rt_->get(actor.call(&Tally::consistent_total, kNumbers), 20s).value_or(-2);
      return restored != -2;
    }));
    EXPECT_NE(restored, -1) << "parts of two states";
    EXPECT_GE(restored, acknowledged) << "what was acknowledged is there";
    EXPECT_LE(restored, acknowledged + 1);
    acknowledged = restored;
  }
}

TEST_F(StateTest, TooLargeAStateIsRefusedAndTheOneBeforeStays) {
  auto actor = tally({.max_restarts = 1}, 3);
  ASSERT_TRUE(rt_->save_state(actor).ok());
  ASSERT_TRUE(rt_->get(actor.call(&Tally::inflate, std::uint64_t{1} << 20)).ok());
  EXPECT_EQ(get(actor.call(&Tally::add, 1)), 4);
  expect_failure(rt_->save_state(actor), ErrorCode::kResourceExhausted,
                 {"save_state", "8388", std::to_string(kActorStateBytesMax)});
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Tally::total)).value_or(0) == 3; }));
}

TEST_F(StateTest, FailuresOfTheHooksAreTold) {
  auto forgetful = rt_->spawn<Forgetful>({.max_restarts = 5});
  ASSERT_TRUE(forgetful.ok());
  ASSERT_TRUE(rt_->save_state(*forgetful).ok());
  ASSERT_TRUE(rt_->get(forgetful->call(&Forgetful::refuse)).ok());
  expect_failure(rt_->save_state(*forgetful), ErrorCode::kUnavailable, {"not now"});
  ASSERT_EQ(::kill(forgetful->pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] {
    const Status status = rt_->get(forgetful->call(&Forgetful::refuse));
    return status.code() == ErrorCode::kActorDied &&
           status.message().find("it means nothing to me") != std::string::npos;
  })) << "a state that is not taken back ends the actor with that reason";

  auto hoarder = rt_->spawn<Hoarder>({});
  ASSERT_TRUE(hoarder.ok());
  ASSERT_TRUE(rt_->get(hoarder->call(&Hoarder::keep, *rt_->put(7))).ok());
  expect_failure(rt_->save_state(*hoarder), ErrorCode::kInvalidArgument, {"ObjectRef"});
}

TEST_F(StateTest, AStateThatCannotBeSavedAtTheEndSparesTheNeighbours) {
  ActorOptions shared{.max_restarts = -1};
  shared.isolation = Isolation::kShared;
  auto neighbour = counter(7, {.isolation = Isolation::kShared});
  auto thrower = make<Thrower>(shared, 5);
  ASSERT_EQ(thrower.pid(), neighbour.pid());
  EXPECT_TRUE(rt_->restart(thrower).ok());
  EXPECT_EQ(get(thrower.call(&Thrower::value)), 5);
  EXPECT_EQ(get(neighbour.call(&Counter::add, 1)), 8) << "it lives";
  ASSERT_TRUE(rt_->kill(thrower).ok());
  expect_failure(rt_->restart(thrower), ErrorCode::kActorDied, {"has ended"});
}

TEST_F(StateTest, ARestartOnRequestServesWhatWaitsAndSavesByItself) {
  auto actor = tally({.max_restarts = -1});
  const int first = get(actor.call(&Tally::pid));
  std::vector<ObjectRef<std::int64_t>> before, after;
  for (int i = 0; i < 500; ++i) before.push_back(actor.call(&Tally::add, 1));
  const Status restarted = rt_->restart(actor);
  ASSERT_TRUE(restarted.ok()) << restarted.to_string();
  for (int i = 0; i < 500; ++i) after.push_back(actor.call(&Tally::add, 1));
  for (int i = 0; i < 500; ++i) ASSERT_EQ(get(before[static_cast<std::size_t>(i)]), i + 1);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(get(after[static_cast<std::size_t>(i)]), 501 + i);
  EXPECT_NE(get(actor.call(&Tally::pid)), first);
}

TEST_F(StateTest, CallsDuringARestartOnRequestRunOnceInOneOfTheTwoLives) {
  auto actor = tally({.max_restarts = -1});
  ASSERT_EQ(get(actor.call(&Tally::add, 0)), 0);
  std::atomic<bool> done{false};
  std::atomic<int> sent{0};
  std::vector<ObjectRef<std::int64_t>> calls;
  std::thread caller([&] {
    while (!done && calls.size() < 100'000) {
      calls.push_back(actor.call(&Tally::add, 1));
      sent = static_cast<int>(calls.size());
      if (sent % 64 == 0) support::pace(1ms);
    }
  });
  ASSERT_TRUE(eventually([&] { return sent >= 200; }));
  const Status restarted = rt_->restart(actor);
  EXPECT_TRUE(restarted.ok()) << restarted.to_string();
  const int before = sent;
  EXPECT_TRUE(eventually([&] { return sent >= std::min(before + 200, 100'000); }));
  done = true;
  caller.join();
  std::int64_t expected = 0;
  for (const auto& call : calls) ASSERT_EQ(get(call), ++expected);
}

TEST_F(StateTest, CallsOfACallerThatIsJustConnectingSurviveARestartOnRequest) {
  for (int round = 0; round < 20; ++round) {
    auto actor = tally({.max_restarts = -1});
    std::vector<ObjectRef<std::int64_t>> calls;
    for (int i = 0; i < 10; ++i) calls.push_back(actor.call(&Tally::add, 1));
    ASSERT_TRUE(rt_->restart(actor).ok());
    for (int i = 0; i < 10; ++i) ASSERT_EQ(get(calls[static_cast<std::size_t>(i)]), i + 1) << round;
    ASSERT_TRUE(rt_->kill(actor).ok());
  }
}

class RestartTest : public ClusterTest, public ::testing::WithParamInterface<Isolation> {};
INSTANTIATE_TEST_SUITE_P(Isolations, RestartTest,
                         ::testing::Values(Isolation::kProcess, Isolation::kShared),
                         [](const auto& test) {
                           return test.param == Isolation::kShared ? "Shared" : "Process";
                         });

TEST_P(RestartTest, SeveralAtOnceLoseNoCallAndLeaveALivingActor) {
  for (int round = 0; round < 6; ++round) {
    auto made = rt_->spawn<Tally>({.max_restarts = -1, .isolation = GetParam()}, 0);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    std::vector<ObjectRef<std::int64_t>> calls;
    for (int i = 0; i < 10; ++i) calls.push_back(made->call(&Tally::add, 1));
    std::vector<std::thread> restarters;
    for (int i = 0; i < 4; ++i) {
      restarters.emplace_back([&] {
        const Status status = rt_->restart(*made);
        EXPECT_TRUE(status.ok()) << status.to_string();
      });
    }
    for (std::thread& restarter : restarters) restarter.join();
    for (const auto& call : calls) EXPECT_GE(get(call), 1);
    EXPECT_EQ(get(made->call(&Tally::total)), 10) << "saved and restored each time";
    ASSERT_TRUE(rt_->kill(*made).ok());
  }
}

TEST_P(RestartTest, AKillInTheMiddleOfOneLeavesNoCallWaiting) {
  for (int round = 0; round < 3; ++round) {
    auto made = rt_->spawn<Busy>({.max_restarts = -1, .isolation = GetParam()});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    ASSERT_TRUE(rt_->get(made->call(&Busy::work, 1)).ok());
    std::vector<ObjectRef<void>> calls;
    for (int i = 0; i < 20; ++i) calls.push_back(made->call(&Busy::work, 10));
    std::thread restarter([&] { (void)rt_->restart(*made); });
    support::pace(std::chrono::milliseconds(2 + 20 * round));  // each time at another point of it
    EXPECT_TRUE(rt_->kill(*made, Restarts::kAllowed).ok());
    restarter.join();
    for (const auto& call : calls) {
      const Status status = rt_->get(call, 20s);
      EXPECT_TRUE(status.ok() || status.code() == ErrorCode::kActorDied) << status.to_string();
    }
    EXPECT_TRUE(rt_->get(made->call(&Busy::work, 1), 20s).ok());
    ASSERT_TRUE(rt_->kill(*made).ok());
  }
}

TEST_F(StateTest, ANodeThatIsStoppedHasItsActorsSave) {
  Command node({kBin + "/starling", "start", "--address", address(), "--num-cpus", "8", "--block"});
  ASSERT_TRUE(eventually([&] { return rt_->cluster().state()->nodes.size() == 2; }))
      << node.output();
  auto hog = counter(0, {.cpus = 4, .node = rt_->cluster().node_id()});
  auto actor = tally({.max_restarts = -1, .cpus = 1});
  ASSERT_NE(actor.node(), rt_->cluster().node_id());
  ASSERT_TRUE(rt_->kill(hog).ok());
  EXPECT_EQ(get(actor.call(&Tally::add, 42)), 42);
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait().exit_code, 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Tally::total)).value_or(-1) == 42; }));
  EXPECT_EQ(actor.node(), rt_->cluster().node_id());
}

}  // namespace
}  // namespace runtime::test
