// End and restart of shared actors: each by its own options, whatever happens to their process.
#include <atomic>
#include <csignal>
#include <fstream>
#include <future>

#include "cluster_fixture.h"
#include "tests/support/blocking_thread.h"
#include "tests/support/gate.h"

namespace runtime::test {
namespace {

ActorOptions shared(ActorOptions options = {}) {
  options.isolation = Isolation::kShared;
  return options;
}

class SharedLifeTest : public ClusterTest {
 protected:
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  ActorHandle<Phoenix> phoenix(ActorOptions options = {}, const std::string& diary = "diary") {
    auto made = rt_->spawn<Phoenix>(shared(std::move(options)), path(diary));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<Phoenix>());
  }
};

class SharedLifeTiming : public SharedLifeTest {};

TEST_F(SharedLifeTest, ACrashRestartsEachByItsOwnOptions) {
  auto mortal = phoenix({}, "mortal");
  auto cat = phoenix({.max_restarts = 2}, "cat");
  auto patient = phoenix({.max_restarts = 1, .max_task_retries = 1}, "patient");
  const pid_t process = mortal.pid();
  ASSERT_EQ(cat.pid(), process);
  ASSERT_EQ(patient.pid(), process);
  EXPECT_EQ(get(cat.call(&Phoenix::add, 5)), 5);
  auto lost = cat.call(&Phoenix::note_behind, path("gate"), "never");
  auto retried = patient.call(&Phoenix::die_once, path("marker"));  // takes the process with it
  EXPECT_EQ(get(retried), 1);
  expect_failure(rt_->get(lost), ErrorCode::kActorDied,
                 {cat.id().short_hex(), "SIGKILL", "being restarted"});
  expect_failure(rt_->get(mortal.call(&Phoenix::add, 1)).status(), ErrorCode::kActorDied,
                 {mortal.id().short_hex(), "SIGKILL", "3 shared actors"});
  EXPECT_EQ(get(cat.call(&Phoenix::add, 1)), 1) << "made again";
  const pid_t second = get(cat.call(&Phoenix::pid));
  EXPECT_NE(second, process);
  EXPECT_EQ(get(patient.call(&Phoenix::pid)), second) << "again they share a process";
  EXPECT_EQ(read("cat"), "made\nmade\n");
  EXPECT_EQ(read("mortal"), "made\n");
}

TEST_F(SharedLifeTest, TerminateServesTheLineOfOneAndLeavesTheOthers) {
  auto other = phoenix({}, "other");
  auto actor = phoenix({.max_restarts = -1});
  const pid_t process = get(actor.call(&Phoenix::pid));
  const support::Gate gate(path("gate"));
  auto first = actor.call(&Phoenix::note_behind, gate.path(), "one");
  auto second = actor.call(&Phoenix::note_behind, gate.path(), "two");
  ASSERT_TRUE(gate.is_reached());
  support::BlockingThread terminating;
  auto ending = std::async(std::launch::async, [&] {
    terminating.begin();
    return rt_->terminate(actor, 20s);
  });
  ASSERT_TRUE(terminating.is_blocked());
  gate.open();
  const Status ended = ending.get();
  ASSERT_TRUE(ended.ok()) << ended.to_string();
  EXPECT_TRUE(rt_->get(first).ok());
  EXPECT_TRUE(rt_->get(second).ok());
  EXPECT_EQ(read("diary"), "made\none\ntwo\ndestroyed\n");
  expect_failure(rt_->get(actor.call(&Phoenix::pid)).status(), ErrorCode::kActorDied,
                 {"terminated"});
  EXPECT_EQ(get(other.call(&Phoenix::pid)), process) << "the process goes on";
}

TEST_F(SharedLifeTest, TerminateKeepsItsDeadline) {
  auto other = phoenix({}, "other");
  auto actor = phoenix();
  (void)get(actor.call(&Phoenix::pid));
  const support::Gate gate(path("gate"));
  auto running = actor.call(&Phoenix::note_behind, gate.path(), "ran");
  auto behind = actor.call(&Phoenix::note_behind, gate.path(), "never");
  ASSERT_TRUE(gate.is_reached());
  Status ended = rt_->terminate(actor, 300ms);
  EXPECT_TRUE(ended.ok()) << ended.to_string();
  expect_failure(rt_->get(actor.call(&Phoenix::pid)).status(), ErrorCode::kActorDied,
                 {"not served its calls in time"});
  gate.open();
  EXPECT_TRUE(rt_->get(running).ok()) << "a call that runs ends by itself";
  EXPECT_EQ(rt_->get(behind).code(), ErrorCode::kActorDied);
  EXPECT_GT(get(other.call(&Phoenix::pid)), 0);
}

TEST_F(SharedLifeTest, KillMayAllowARestart) {
  auto other = phoenix({}, "other");
  auto actor = phoenix({.max_restarts = -1});
  EXPECT_EQ(get(actor.call(&Phoenix::add, 3)), 3);
  ASSERT_TRUE(rt_->kill(actor, Restarts::kAllowed).ok());
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Phoenix::add, 1)).value_or(0) > 0; }));
  EXPECT_EQ(read("diary"), "made\ndestroyed\nmade\n");
  EXPECT_EQ(read("other"), "made\n");
  ASSERT_TRUE(rt_->kill(actor).ok());
  expect_failure(rt_->get(actor.call(&Phoenix::add, 1)).status(), ErrorCode::kActorDied,
                 {"killed on request"});
}

TEST_F(SharedLifeTest, ARestartWaitsForTheEndOfItsEarlierSelf) {
  auto other = phoenix({}, "other");
  auto actor = phoenix({.max_restarts = -1});
  EXPECT_GT(get(actor.call(&Phoenix::pid)), 0);
  const support::Gate gate(path("gate"));
  auto last = actor.call(&Phoenix::note_behind, gate.path(), "last");
  ASSERT_TRUE(gate.is_reached());
  ASSERT_TRUE(rt_->kill(actor, Restarts::kAllowed).ok());
  gate.open();
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Phoenix::add, 1)).value_or(0) > 0; }));
  EXPECT_EQ(read("diary"), "made\nlast\ndestroyed\nmade\n");
}

TEST_F(SharedLifeTest, ACallThatDoesNotEndHoldsARestartUpForASecondOnly) {
  auto other = phoenix({}, "other");
  auto actor = phoenix({.max_restarts = -1});
  EXPECT_GT(get(actor.call(&Phoenix::pid)), 0);
  const support::Gate gate(path("gate"));
  auto endless = actor.call(&Phoenix::note_behind, gate.path(), "late");
  ASSERT_TRUE(gate.is_reached());
  ASSERT_TRUE(rt_->kill(actor, Restarts::kAllowed).ok());
  // Nor its caller: that call has failed, and the next ones are the new self's.
  EXPECT_GT(get(actor.call(&Phoenix::pid)), 0);
  expect_failure(rt_->get(endless), ErrorCode::kActorDied, {"note_behind", "keeps running"});
  EXPECT_TRUE(eventually([&] { return read("diary") == "made\nmade\n"; })) << read("diary");
  gate.open();
  EXPECT_GT(get(actor.call(&Phoenix::pid)), 0) << "the late end of that call answers no caller";
}

TEST_F(SharedLifeTest, AWatchTellsOfARestartAndOfTheEnd) {
  auto actor = phoenix({.max_restarts = 1});
  std::atomic<int> restarting{0}, alive{0}, dead{0};
  Watch watch = rt_->watch(actor, [&](const ActorEvent& event) {
    if (event.kind == ActorEvent::Kind::kRestarting)
      ++restarting;
    else if (event.kind == ActorEvent::Kind::kAlive)
      ++alive;
    else
      ++dead;
  });
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return alive >= 1; }));
  EXPECT_EQ(restarting, 1);
  ASSERT_EQ(::kill(get(actor.call(&Phoenix::pid)), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return dead == 1; }));
}

TEST_F(SharedLifeTest, WhatASharedActorSpawnsEndsWithIt) {
  auto parents = rt_->spawn_group<Parent>(2, shared());
  ASSERT_TRUE(parents.ok()) << parents.status().to_string();
  auto first = get((*parents)[0].call(&Parent::bear, path("first"), "", false));
  auto second = get((*parents)[1].call(&Parent::bear, path("second"), "", false));
  ASSERT_TRUE(rt_->kill((*parents)[0]).ok());
  EXPECT_TRUE(eventually([&] {
    return rt_->get(first.call(&Phoenix::pid)).status().code() == ErrorCode::kActorDied;
  }));
  expect_failure(rt_->get(first.call(&Phoenix::pid)).status(), ErrorCode::kActorDied,
                 {"its owner"});
  EXPECT_GT(get(second.call(&Phoenix::pid)), 0) << "the other parent's child lives";
}

TEST_F(SharedLifeTest, NamesAreFreeAgainAfterACrash) {
  ActorOptions named{.name = "one"};
  auto actor = phoenix(named);
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually(
      [&] { return rt_->get_actor<Phoenix>("one").status().code() == ErrorCode::kNotFound; }));
  ActorOptions again = named;
  again.get_if_exists = true;
  auto next = phoenix(again);
  EXPECT_NE(next.id(), actor.id());
  EXPECT_EQ(phoenix(again).id(), next.id());
}

TEST_F(SharedLifeTest, ForceIsForActorsWithAProcessOfTheirOwn) {
  auto made = rt_->spawn<Patient>(shared({.concurrency_groups = {{"ask", 1}}}));
  ASSERT_TRUE(made.ok());
  auto running = made->call(&Patient::wait, 60'000);
  ASSERT_TRUE(eventually([&] { return get(made->call(&Patient::started)) == 1; }));
  expect_failure(rt_->cancel(running, CancelMode::kForce), ErrorCode::kInvalidArgument,
                 {made->id().short_hex(), "Isolation::kProcess"});
  expect_failure(rt_->get(running, 20s).status(), ErrorCode::kCancelled, {"wait"});
  EXPECT_EQ(get(made->call(&Patient::interrupted)), 1) << "it was asked to end";
  expect_failure(rt_->spawn<Phoenix>(shared({.cpu_affinity = {0}}), path("pinned")).status(),
                 ErrorCode::kInvalidArgument, {"Isolation::kProcess"});
}

TEST_F(SharedLifeTest, AProcessWithoutActorsEnds) {
  auto actor = phoenix();
  const pid_t process = actor.pid();
  ASSERT_TRUE(rt_->kill(actor).ok());
  EXPECT_EQ(::kill(process, 0), 0) << "it stays for a moment, for others";
  EXPECT_TRUE(eventually([&] { return ::kill(process, 0) != 0; }));
  EXPECT_GT(get(phoenix().call(&Phoenix::pid)), 0);
}

TEST_F(SharedLifeTest, ADetachedOneOutlivesItsJobInAProcessOfThose) {
  ActorOptions options{
      .name = "service", .name_space = "common", .detached = true, .max_restarts = 1};
  auto detached = phoenix(options, "detached");
  auto ordinary = phoenix();
  EXPECT_NE(detached.pid(), ordinary.pid());
  const pid_t service = detached.pid();
  // Another driver on the same cluster; this one's job ends.
  const std::string cluster = address();
  RuntimeOptions other;
  other.address = cluster;
  static char name[] = "test_runtime_actor";
  static char* argv[] = {name, nullptr};
  Runtime second(1, argv, other);
  register_test_actors(second);
  register_test_tasks(second);
  ASSERT_TRUE(second.start().ok());
  auto found = second.get_actor<Phoenix>("service", "common");
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  ASSERT_EQ(::kill(service, SIGKILL), 0);
  EXPECT_TRUE(eventually([&] {
    return second.get(found->call(&Phoenix::pid)).value_or(service) != service;
  })) << "it is made again";
  EXPECT_GT(get(ordinary.call(&Phoenix::pid)), 0);
  ASSERT_TRUE(second.kill(*found).ok());
  second.stop();
}

TEST_F(SharedLifeTiming, ThousandsDieTogetherWithoutADelay) {
  constexpr std::size_t kSize = 10'000;
  auto group = rt_->spawn_group<Counter>(kSize, shared({.max_restarts = 0}), 1);
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  auto watcher = counter();
  std::vector<ObjectRef<int>> waiting;
  const support::Gate gate(path("gate"));
  for (const auto& member : *group) waiting.push_back(member.call(&Counter::pass, gate.path()));
  ASSERT_TRUE(gate.is_reached());
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(::kill((*group)[0].pid(), SIGKILL), 0);
  for (std::size_t rank = 0; rank < kSize; ++rank) {
    Status status = rt_->get(waiting[rank], 60s).status();
    ASSERT_EQ(status.code(), ErrorCode::kActorDied) << rank << " " << status.to_string();
    ASSERT_NE(status.message().find("SIGKILL"), std::string::npos)
        << rank << " " << status.message();
  }
  EXPECT_EQ(get(watcher.call(&Counter::add, 1)), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST_F(SharedLifeTest, ThousandsComeBackTogether) {
  constexpr std::size_t kSize = 2'000;
  auto group = rt_->spawn_group<Counter>(kSize, shared({.max_restarts = 1}), 7);
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  const pid_t first = (*group)[0].pid();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(
      eventually([&] { return rt_->objects().gather(group->call(&Counter::add, 1), 60s).ok(); }));
  auto pids = rt_->objects().gather(group->call(&Counter::pid), 60s);
  ASSERT_TRUE(pids.ok()) << pids.status().to_string();
  for (int pid : *pids) ASSERT_EQ(pid, pids->front());
  EXPECT_NE(pids->front(), first);
}

}  // namespace
}  // namespace runtime::test
