// Beginning, end and restart of actors, with real processes.
#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>

#include "cluster_fixture.h"
#include "tests/support/blocking_thread.h"
#include "tests/support/gate.h"

namespace runtime::test {
namespace {

const std::string kSelf = std::filesystem::read_symlink("/proc/self/exe").string();

class LifecycleTest : public ClusterTest {
 protected:
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  ActorHandle<Phoenix> phoenix(ActorOptions options = {}, const std::string& diary = "diary") {
    auto made = rt_->spawn<Phoenix>(options, path(diary));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<Phoenix>());
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    return text;
  }
  static bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0; }
  /// Processes whose environment names this test's folder of sessions: nodes, workers, drivers,
  /// everything below them.
  std::vector<pid_t> processes(const std::string& session_root) const {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0 || pid == ::getpid()) continue;
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      std::string environment((std::istreambuf_iterator<char>(file)), {});
      if (environment.find("STARLING_SESSION_ROOT=" + session_root) != std::string::npos)
        found.push_back(pid);
    }
    return found;
  }
};

TEST_F(LifecycleTest, AKilledActorIsMadeAgainWithTheSameArguments) {
  auto actor = phoenix({.max_restarts = 2});
  EXPECT_EQ(get(actor.call(&Phoenix::add, 5)), 5);
  pid_t first = actor.pid();
  const support::Gate gate(path("gate"));
  auto lost = actor.call(&Phoenix::note_behind, gate.path(), "never");
  ASSERT_TRUE(gate.is_reached());
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  expect_failure(rt_->get(lost), ErrorCode::kActorDied, {"SIGKILL", "being restarted"});
  EXPECT_EQ(get(actor.call(&Phoenix::add, 1)), 1)
      << "a later call waits for the next incarnation, which starts again";
  pid_t second = get(actor.call(&Phoenix::pid));
  EXPECT_NE(second, first);
  EXPECT_EQ(actor.pid(), second) << "the handle leads to the new process";
  EXPECT_EQ(read("diary"), "made\nmade\n");
  ASSERT_EQ(::kill(second, SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Phoenix::add, 1)).ok(); }));
  ASSERT_EQ(::kill(get(actor.call(&Phoenix::pid)), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] {
    return rt_->get(actor.call(&Phoenix::add, 1)).status().message().find("being restarted") ==
           std::string::npos;
  }));
  expect_failure(rt_->get(actor.call(&Phoenix::add, 1)).status(), ErrorCode::kActorDied,
                 {"SIGKILL"});
}

TEST_F(LifecycleTest, ARetriedCallRunsInTheNextIncarnationAndInOrder) {
  auto actor = phoenix({.max_restarts = 1, .max_task_retries = 1});
  auto dies = actor.call(&Phoenix::die_once, path("marker"));
  std::vector<ObjectRef<int>> behind;
  for (int i = 0; i < 100; ++i) behind.push_back(actor.call(&Phoenix::add, 1));
  EXPECT_EQ(get(dies), 1);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(get(behind[static_cast<std::size_t>(i)]), i + 1);
}

TEST_F(LifecycleTest, ACallIsNotSentTwiceUnlessItMayBe) {
  auto actor = phoenix({.max_restarts = 1, .max_task_retries = 5});
  CallOptions once;
  once.max_task_retries = 0;
  expect_failure(rt_->get(actor.call(once, &Phoenix::die_once, path("marker"))).status(),
                 ErrorCode::kActorDied, {"die_once"});
  EXPECT_EQ(get(actor.call(&Phoenix::die_once, path("marker"))), 1)
      << "it has not run in the second life before";
}

TEST_F(LifecycleTest, CallsWaitForARestartWithinTheirDeadline) {
  ActorOptions options{.max_restarts = 1, .cpus = 4};
  auto actor = phoenix(options);
  ASSERT_EQ(get(actor.call(&Phoenix::add, 1)), 1);
  ASSERT_EQ(::kill(actor.pid(), SIGSTOP),
            0);  // its node cannot start another before this one is reaped
  Status late = rt_->get(actor.call(CallOptions{.timeout = 300ms}, &Phoenix::add, 1)).status();
  EXPECT_EQ(late.code(), ErrorCode::kDeadlineExceeded) << late.to_string();
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually(
      [&] { return rt_->get(actor.call(CallOptions{.timeout = 5s}, &Phoenix::add, 1)).ok(); }));
}

TEST_F(LifecycleTest, HandlesElsewhereFindTheNextIncarnationToo) {
  auto counting = counter(0, {.max_restarts = 1});
  auto other = broker("other");
  EXPECT_EQ(get(other.call(&Broker::add_through, counting, 1)), 1);
  ASSERT_EQ(::kill(counting.pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(counting.call(&Counter::add, 1)).ok(); }));
  EXPECT_TRUE(
      eventually([&] { return rt_->get(other.call(&Broker::add_through, counting, 1)).ok(); }));
}

TEST_F(LifecycleTest, KillMayAllowARestart) {
  auto actor = phoenix({.max_restarts = -1});
  pid_t first = actor.pid();
  ASSERT_TRUE(rt_->kill(actor, Restarts::kAllowed).ok());
  EXPECT_TRUE(is_gone(first));
  EXPECT_TRUE(eventually([&] { return rt_->get(actor.call(&Phoenix::add, 1)).ok(); }));
  ASSERT_TRUE(rt_->kill(actor).ok());
  expect_failure(rt_->get(actor.call(&Phoenix::add, 1)).status(), ErrorCode::kActorDied,
                 {"killed on request"});
}

TEST_F(LifecycleTest, TerminateServesWhatWaitsAndDestroysTheActor) {
  auto actor = phoenix({.max_restarts = -1});
  pid_t pid = get(actor.call(&Phoenix::pid));  // connected: what follows is sent at once
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
  EXPECT_TRUE(is_gone(pid));
  EXPECT_TRUE(rt_->get(first).ok());
  EXPECT_TRUE(rt_->get(second).ok());
  EXPECT_EQ(read("diary"), "made\none\ntwo\ndestroyed\n");
  expect_failure(rt_->get(actor.call(&Phoenix::pid)).status(), ErrorCode::kActorDied,
                 {"terminated (exited with code 0)"});
  EXPECT_TRUE(rt_->terminate(actor).ok()) << "of a dead actor is no error";
}

TEST_F(LifecycleTest, TerminateKillsAtItsDeadline) {
  auto actor = phoenix();
  const support::Gate gate(path("gate"));
  auto endless = actor.call(&Phoenix::note_behind, gate.path(), "never");
  ASSERT_TRUE(gate.is_reached());
  Status ended = rt_->terminate(actor, 300ms);
  EXPECT_TRUE(ended.ok()) << ended.to_string();
  expect_failure(rt_->get(endless), ErrorCode::kActorDied, {"not served its calls in time"});
}

TEST_F(LifecycleTest, AScopedActorEndsWithItsScope) {
  pid_t pid = 0;
  {
    auto scoped = rt_->spawn_scoped<Phoenix>({}, path("diary"));
    ASSERT_TRUE(scoped.ok()) << scoped.status().to_string();
    pid = get((*scoped)->call(&Phoenix::pid));
    EXPECT_FALSE(is_gone(pid));
  }
  EXPECT_TRUE(is_gone(pid));
  EXPECT_EQ(read("diary"), "made\ndestroyed\n");
}

TEST_F(LifecycleTest, ChildrenEndWithTheirParentUnlessDetached) {
  auto parent = rt_->spawn<Parent>({});
  ASSERT_TRUE(parent.ok());
  auto child = get(parent->call(&Parent::bear, path("child"), "", false));
  auto service = get(parent->call(&Parent::bear, path("service"), "service", true));
  pid_t child_pid = get(child.call(&Phoenix::pid));
  ASSERT_EQ(::kill(parent->pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return is_gone(child_pid); }));
  EXPECT_TRUE(eventually([&] {
    Status status = rt_->get(child.call(&Phoenix::pid)).status();
    return status.code() == ErrorCode::kActorDied &&
           status.message().find("its owner") != std::string::npos;
  }));
  EXPECT_EQ(get(service.call(&Phoenix::add, 3)), 3);
  EXPECT_TRUE(rt_->kill(service).ok());
}

TEST_F(LifecycleTest, SpawnCanReturnTheActorThatIsThere) {
  auto first = counter(7, {.name = "one"});
  auto second = counter(0, {.name = "one", .get_if_exists = true});
  EXPECT_EQ(second, first);
  EXPECT_EQ(get(second.call(&Counter::total)), 7);
  expect_failure(
      rt_->spawn<Phoenix>({.name = "one", .get_if_exists = true}, path("diary")).status(),
      ErrorCode::kInvalidArgument, {"one", "Counter"});
}

TEST_F(LifecycleTest, ADetachedActorIsFoundByAnotherDriver) {
  Command maker({kSelf, "--detached-maker", path("diary"), "--address", address()});
  ASSERT_EQ(maker.wait().exit_code, 0);
  auto service = rt_->get_actor<Phoenix>("service", "common");
  ASSERT_TRUE(service.ok()) << service.status().to_string();
  EXPECT_EQ(get(service->call(&Phoenix::add, 2)), 2);
  auto listed = run({kBin + "/starling", "list", "actors", "--address", address()});
  EXPECT_NE(listed.output.find("detached in namespace common"), std::string::npos) << listed.output;
  ASSERT_EQ(::kill(service->pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return rt_->get(service->call(&Phoenix::add, 2)).ok(); }))
      << "it is restarted though its driver has ended";
  EXPECT_EQ(read("diary"), "made\nmade\n");
  ASSERT_TRUE(rt_->terminate(*service).ok());
  EXPECT_EQ(rt_->get_actor<Phoenix>("service", "common", 1s).status().code(), ErrorCode::kNotFound);
}

TEST_F(LifecycleTest, AWatchTellsOfDeathsAndRestarts) {
  std::mutex mutex;
  std::vector<ActorEvent> events;
  auto actor = phoenix({.max_restarts = 1});
  Watch watch = rt_->watch(actor, [&](const ActorEvent& event) {
    std::lock_guard lock(mutex);
    events.push_back(event);
  });
  auto count = [&] {
    std::lock_guard lock(mutex);
    return events.size();
  };
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return count() == 2; }));
  ASSERT_TRUE(rt_->kill(actor).ok());
  ASSERT_TRUE(eventually([&] { return count() == 3; }));
  EXPECT_EQ(events[0].kind, ActorEvent::Kind::kRestarting);
  EXPECT_EQ(events[0].state.death.signal, SIGKILL);
  EXPECT_EQ(events[1].kind, ActorEvent::Kind::kAlive);
  EXPECT_EQ(events[2].kind, ActorEvent::Kind::kDead);
  expect_failure(events[2].death(), ErrorCode::kActorDied, {"Phoenix", "killed on request"});
  std::atomic<bool> told{false};
  Watch late = rt_->watch(
      actor, [&](const ActorEvent& event) { told = event.kind == ActorEvent::Kind::kDead; });
  EXPECT_TRUE(eventually([&] { return told.load(); })) << "a death before the watch is told too";
}

TEST_F(LifecycleTest, ActorsWatchTheirChildrenAndAStoppedWatchIsSilent) {
  auto actor = phoenix();
  std::atomic<int> calls{0};
  Watch watch = rt_->watch(actor, [&](const ActorEvent&) { ++calls; });
  std::atomic<bool> told{false};
  Watch later = rt_->watch(
      actor, [&](const ActorEvent& event) { told = event.kind == ActorEvent::Kind::kDead; });
  watch.stop();
  ASSERT_TRUE(rt_->kill(actor).ok());
  ASSERT_TRUE(eventually([&] { return told.load(); }));  // behind the other in line
  EXPECT_EQ(calls, 0);
}

TEST_F(LifecycleTest, ACallbackMayThrowAndMayStopTheRuntime) {
  auto actor = phoenix();
  std::atomic<int> told{0};
  Watch throws = rt_->watch(actor, [&](const ActorEvent&) {
    ++told;
    throw std::runtime_error("not my day");
  });
  Watch stops = rt_->watch(actor, [&](const ActorEvent&) {
    rt_->stop();
    ++told;
  });
  ASSERT_TRUE(rt_->kill(actor).ok());
  EXPECT_TRUE(eventually([&] { return told == 2; }));
  EXPECT_EQ(rt_->put(1).status().code(), ErrorCode::kCancelled);
}

TEST_F(LifecycleTest, AForkedChildLeavesTheRuntimeToItsParent) {
  auto actor = counter();
  const pid_t child = ::fork();
  if (child == 0) {
    rt_->stop();
    rt_.reset();
    ::_exit(7);
  }
  int status = 0;
  pid_t ended = 0;
  EXPECT_TRUE(eventually([&] { return (ended = ::waitpid(child, &status, WNOHANG)) == child; }));
  if (ended != child) ::kill(child, SIGKILL);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_EQ(get(actor.call(&Counter::add, 3)), 3);
}

TEST_F(LifecycleTest, NodesThatComeAndGoAreTold) {
  std::mutex mutex;
  std::vector<std::pair<NodeEvent::Kind, NodeId>> events;
  Watch watch = rt_->cluster().watch_nodes([&](const NodeEvent& event) {
    std::lock_guard lock(mutex);
    events.emplace_back(event.kind, event.node.node);
  });
  auto count = [&] {
    std::lock_guard lock(mutex);
    return events.size();
  };
  ASSERT_TRUE(eventually([&] { return count() == 1; }));
  EXPECT_EQ(events[0], std::pair(NodeEvent::Kind::kJoined, rt_->cluster().node_id()));
  Command node({kBin + "/starling", "start", "--address", address(), "--num-cpus", "2", "--block"});
  ASSERT_TRUE(eventually([&] { return count() == 2; })) << node.output();
  EXPECT_EQ(events[1].first, NodeEvent::Kind::kJoined);
  NodeId second = events[1].second;
  auto actor = phoenix({.max_restarts = 1, .node = second});
  node.signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return count() == 3; }));
  EXPECT_EQ(events[2], std::pair(NodeEvent::Kind::kLost, second));
}

TEST_F(LifecycleTest, AnActorOfALostNodeIsRestartedOnAnother) {
  Command node({kBin + "/starling", "start", "--address", address(), "--num-cpus", "8", "--block"});
  ASSERT_TRUE(eventually([&] { return rt_->cluster().state()->nodes.size() == 2; }))
      << node.output();
  auto hog = counter(0, {.cpus = 4, .node = rt_->cluster().node_id()});
  auto actor = phoenix({.max_restarts = 1, .max_task_retries = 1, .cpus = 1});
  ASSERT_NE(actor.node(), rt_->cluster().node_id());
  ASSERT_TRUE(rt_->kill(hog).ok());
  const support::Gate gate(path("gate"));
  auto lost = actor.call(&Phoenix::note_behind, gate.path(), "said");
  ASSERT_TRUE(gate.is_reached());
  node.signal(SIGKILL);
  gate.open();
  Status said = rt_->get(lost, 30s);
  EXPECT_TRUE(said.ok()) << said.to_string();
  EXPECT_TRUE(eventually([&] {
    // The dying process may have answered the call above.
    (void)rt_->get(actor.call(&Phoenix::pid));
    return actor.node() == rt_->cluster().node_id();
  }));
}

TEST_F(LifecycleTest, LinesCarryTheActorsPrefix) {
  ::testing::internal::CaptureStdout();
  auto actor = counter(0, {.log_prefix = "left"});
  ASSERT_TRUE(rt_->get(actor.call(&Counter::print, "hello")).ok());
  rt_->stop();
  EXPECT_NE(::testing::internal::GetCapturedStdout().find(
                "(left pid=" + std::to_string(actor.pid()) +
                ", node=" + rt_->cluster().node_id().short_hex() + ") hello\n"),
            std::string::npos);
}

// -- Nothing is left behind. Each of these has its own cluster, with a driver, a parent, its
// child, a call that never returns, and a detached actor.

class OrphanTest : public LifecycleTest {
 protected:
  void SetUp() override {
    LifecycleTest::SetUp();
    family_root_ = path("family");
    ::setenv("STARLING_SESSION_ROOT", family_root_.c_str(), 1);
    head_ = std::make_unique<Command>(std::vector<std::string>{
        kBin + "/starling", "start", "--head", "--port", "0", "--num-cpus", "4", "--block"});
    ASSERT_TRUE(eventually([&] { return !address_in(head_->output()).empty(); }))
        << head_->output();
    address_ = address_in(head_->output());
    ASSERT_TRUE(eventually([&] { return nodes() == 1; }))
        << head_->output();  // it logs its address before others can find it
    node_ = std::make_unique<Command>(std::vector<std::string>{
        kBin + "/starling", "start", "--address", address_, "--num-cpus", "4", "--block"});
    ASSERT_TRUE(eventually([&] { return nodes() == 2; })) << node_->output();
    driver_ = std::make_unique<Command>(
        std::vector<std::string>{kSelf, "--family", path("diary"), "--address", address_});
    ASSERT_TRUE(eventually([&] { return driver_->output().find("ready") != std::string::npos; }))
        << driver_->output();
    std::istringstream text(driver_->output().substr(driver_->output().find("ready") + 5));
    text >> parent_ >> child_ >> keeper_;
    ASSERT_FALSE(is_gone(parent_));
    ASSERT_FALSE(is_gone(child_));
    ASSERT_FALSE(is_gone(keeper_));
  }
  void TearDown() override {
    driver_.reset();
    node_.reset();
    head_.reset();
    EXPECT_TRUE(eventually([&] { return processes(family_root_).empty(); }));
    LifecycleTest::TearDown();
  }
  /// The first HOST:PORT of the loopback that is followed by something, so that it is whole.
  static std::string address_in(const std::string& text) {
    const std::string host = "127.0.0.1:";
    const std::size_t at = text.find(host);
    const std::size_t end =
        at == std::string::npos ? at : text.find_first_not_of("0123456789", at + host.size());
    return end == std::string::npos ? "" : text.substr(at, end - at);
  }
  std::ptrdiff_t nodes() const {
    const CommandResult listed = run({kBin + "/starling", "list", "nodes", "--address", address_});
    return listed.exit_code == 0 ? std::count(listed.output.begin(), listed.output.end(), '\n') : 0;
  }
  bool workers_end() {
    return eventually([&] { return is_gone(parent_) && is_gone(child_); });
  }

  std::string family_root_;
  std::string address_;
  std::unique_ptr<Command> head_, node_, driver_;
  pid_t parent_ = 0, child_ = 0, keeper_ = 0;
};

TEST_F(OrphanTest, OfAKilledDriver) {
  driver_->signal(SIGKILL);
  driver_->wait();
  EXPECT_TRUE(workers_end());
  EXPECT_TRUE(eventually([&] { return processes(family_root_).size() == 4; }))
      << "only the head, the two nodes and the detached actor are left";
  EXPECT_FALSE(is_gone(keeper_));
}

TEST_F(OrphanTest, OfAKilledWorker) {
  ASSERT_EQ(::kill(parent_, SIGKILL), 0);
  EXPECT_TRUE(workers_end());
  EXPECT_TRUE(eventually([&] { return processes(family_root_).size() == 5; }))
      << "the head, the nodes, the driver and the detached actor are left";
}

TEST_F(OrphanTest, OfAKilledNode) {
  node_->signal(SIGKILL);
  node_->wait();
  EXPECT_TRUE(eventually([&] { return is_gone(parent_) && is_gone(child_); }))
      << "the parent was on that node, and owned the child on the other";
  EXPECT_TRUE(eventually([&] { return processes(family_root_).size() == 4; }))
      << "the head and its node, the driver and the detached actor are left";
  EXPECT_FALSE(is_gone(keeper_));
}

TEST_F(OrphanTest, OfAKilledHead) {
  head_->signal(SIGKILL);
  head_->wait();
  EXPECT_TRUE(workers_end());
  EXPECT_TRUE(eventually([&] {
    auto left = processes(family_root_);
    std::erase(left, driver_->pid());
    return left.empty();
  })) << "only the driver is left";
}

}  // namespace
}  // namespace runtime::test
