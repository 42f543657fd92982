// A driver that forks: the child is refused everything and disturbs nothing.
#include <sys/wait.h>
#include <atomic>

#include <functional>
#include <sstream>

#include "cluster_fixture.h"

namespace runtime::test {
namespace {

class ForkTest : public ClusterTest {
 protected:
  /// Runs `body` in a child that fork() makes; what it says is wrong. `meanwhile` runs here.
  std::string in_child(const std::function<std::string()>& body,
                       const std::function<void()>& meanwhile = {}) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // a call that hangs
      const std::string wrong = body();
      ::_exit(::write(ends[1], wrong.data(), wrong.size()) == static_cast<ssize_t>(wrong.size())
                  ? 0
                  : 1);
    }
    ::close(ends[1]);
    if (meanwhile) meanwhile();
    std::string wrong;
    char part[4096];
    for (ssize_t count; (count = ::read(ends[0], part, sizeof part)) > 0;)
      wrong.append(part, static_cast<std::size_t>(count));
    ::close(ends[0]);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "the child ended by " << WTERMSIG(status);
    return wrong;
  }

  class Refusals {
   public:
    void expect(const char* what, const Status& status) {
      if (status.code() != ErrorCode::kInvalidArgument ||
          status.message().find("fork()") == std::string::npos)
        wrong_ << what << ": " << status.to_string() << "\n";
    }
    std::string wrong() const { return wrong_.str(); }

   private:
    std::ostringstream wrong_;
  };
};

TEST_F(ForkTest, TheChildIsRefusedWhileTheParentGetsItsAnswers) {
  auto actor = counter();
  auto group = rt_->spawn_group<Member>(2, ActorOptions{}, 1, std::string("team"));
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  auto stored = rt_->put(std::vector<float>(1 << 16, 1.0F));
  ASSERT_TRUE(stored.ok());
  const auto settled = actor.call(&Counter::add, 0);
  EXPECT_EQ(get(settled), 0);
  const auto pending = actor.call(&Counter::sleep_ms, 300);
  const auto refused = [&] {
    Refusals refusals;
    Runtime& rt = *rt_;
    refusals.expect("call", rt.get(actor.call(&Counter::add, 1000)).status());
    refusals.expect("group call", rt.objects().gather(group->call(&Member::times, 2)).status());
    refusals.expect("get of a settled one", rt.get(settled).status());
    refusals.expect("get of a pending one", rt.get(pending).status());
    refusals.expect("get of a stored one", rt.get(*stored).status());
    refusals.expect("view", rt.objects().view(*stored).status());
    refusals.expect("spawn", rt.spawn<Counter>({}, 1).status());
    refusals.expect("spawn_group", rt.spawn_group<Counter>(2, ActorOptions{}, 1).status());
    refusals.expect("get_actor", rt.get_actor<Counter>("x").status());
    refusals.expect("kill", rt.kill(actor));
    refusals.expect("terminate", rt.terminate(actor));
    refusals.expect("restart", rt.restart(actor));
    refusals.expect("cancel", rt.cancel(pending));
    refusals.expect("put", rt.put(std::string("x")).status());
    refusals.expect("task", rt.get(rt.task(&twice, 2)).status());
    refusals.expect("gather", rt.objects().gather(std::vector{settled, pending}).status());
    refusals.expect("when_all", rt.get(rt.objects().when_all(std::vector{settled, pending})));
    refusals.expect("kv().put", rt.kv().put("k", "v"));
    refusals.expect("kv().get", rt.kv().get("k").status());
    refusals.expect("kv().add", rt.kv().add("n", 1).status());
    refusals.expect("cluster_state", rt.cluster().state().status());
    refusals.expect("refs", rt.objects().list().status());
    refusals.expect("when_dead", rt.get(rt.when_dead(actor)).status());
    refusals.expect("start", rt.start());
    std::string wrong = refusals.wrong();
    if (rt.wait(std::vector{pending}, 1).ready.size() != 0) wrong += "a pending one is ready\n";
    if (rt.cluster().watch_nodes([](const NodeEvent&) {}).is_active()) wrong += "it watches\n";
    return wrong;
  };
  const auto call_on = [&] {
    for (int i = 1; i <= 200; ++i) EXPECT_EQ(get(actor.call(&Counter::add, 1)), i);
  };
  EXPECT_EQ(in_child(refused, call_on), "");
  EXPECT_EQ(get(pending), 300);
  EXPECT_EQ(get(actor.call(&Counter::total)), 200);
}

TEST_F(ForkTest, TheChildsDestructorsAndItsEndAreHarmless) {
  auto actor = counter(7);
  auto stored = rt_->put(std::vector<float>(1 << 20, 2.0F));
  ASSERT_TRUE(stored.ok());
  auto view = rt_->objects().view(*stored);
  ASSERT_TRUE(view.ok());
  std::atomic<int> told = 0;
  Watch watch = rt_->watch(actor, [&](const ActorEvent&) { ++told; });
  EXPECT_EQ(in_child([&] {
              actor = {};
              *view = {};
              *stored = {};
              watch.stop();
              rt_.reset();
              return std::string();
            }),
            "");
  EXPECT_EQ(view->data()[1 << 19], 2.0F);
  EXPECT_EQ(get(*stored).size(), std::size_t{1} << 20);
  EXPECT_EQ(get(actor.call(&Counter::total)), 7);
  EXPECT_EQ(told, 0);
  ASSERT_TRUE(rt_->kill(actor).ok());
  EXPECT_TRUE(eventually([&] { return told == 1; })) << "the watch still calls back";
}

TEST_F(ForkTest, TheChildMayStartARuntimeOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets no child of a process with threads start one";
#endif
  auto actor = counter(7, ActorOptions{.name = "seven", .name_space = "common"});
  const std::string at = address();
  const auto own_runtime = [&] {
    static char name[] = "test_runtime_actor";
    static char* argv[] = {name, nullptr};
    RuntimeOptions options;
    options.address = at;
    options.name_space = "common";
    Runtime own(1, argv, options);
    register_test_actors(own);
    if (Status status = own.start(); !status.ok()) return status.to_string();
    auto found = own.get_actor<Counter>("seven");
    if (!found.ok()) return found.status().to_string();
    auto total = own.get(found->call(&Counter::add, 1));
    return total.ok() ? std::string(*total == 8 ? "" : "another total")
                      : total.status().to_string();
  };
  EXPECT_EQ(in_child(own_runtime), "");
  EXPECT_EQ(get(actor.call(&Counter::total)), 8);
}

TEST_F(ForkTest, AnActorsChildIsRefusedToo) {
  auto forks = make<Forking>();
  EXPECT_EQ(get(forks.call(&Forking::child_calls, counter(3))), "");
  EXPECT_EQ(get(forks.call(&Forking::total_of, counter(3))), 3);
}

// The child is made without what fork() runs: it keeps the driver's sockets.
TEST_F(ForkTest, ADriverThatIsKilledIsSeenThoughAChildHasItsSockets) {
  Command driver({std::filesystem::read_symlink("/proc/self/exe").string(), "--leaves-child", "x",
                  "--address", address()});
  int actor = 0, child = 0;
  ASSERT_TRUE(eventually([&] {
    return std::sscanf(driver.output().c_str(), "ready %d %d", &actor, &child) == 2;
  })) << driver.output();
  EXPECT_EQ(::kill(actor, 0), 0);
  driver.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return ::kill(actor, 0) != 0; })) << "its actor goes on";
  EXPECT_EQ(::kill(child, 0), 0);
  const std::vector<std::string> list{STARLING_BIN_DIR "/starling", "list", "jobs", "--address",
                                      address()};
  EXPECT_TRUE(eventually([&] { return run(list).output.find("failed") != std::string::npos; }))
      << run(list).output;
  ::kill(child, SIGKILL);
}

}  // namespace
}  // namespace runtime::test
