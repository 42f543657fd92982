// Limits of the machine: processes and threads, descriptors.
#include <sys/resource.h>

#include "cluster_fixture.h"
#include "tests/support/process_limit.h"

namespace runtime::test {
namespace {

class LimitsTest : public ClusterTest {
 protected:
  void SetUp() override {}  // the tests choose the limits first
  int node_pid() {
    auto state = rt_->cluster().state();
    return state.ok() && !state->nodes.empty() ? state->nodes[0].pid : 0;
  }
  /// The log of the driver's own node.
  std::string node_log() {
    std::string text;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_, error)) {
      if (entry.path().filename() != "start.log" && entry.path().filename() != "node.log") continue;
      std::ifstream file(entry.path());
      std::ostringstream all;
      all << file.rdbuf();
      text += all.str();
    }
    return text;
  }
  static long soft_descriptors(int pid) {
    rlimit limit{};
    EXPECT_EQ(::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit), 0) << pid;
    return static_cast<long>(limit.rlim_cur);
  }
};

TEST_F(LimitsTest, AProgramThatFindsNoThreadSaysSo) {
  start({"--num-cpus", "1"});
  support::ProcessLimit limit;
  if (!limit.is_group()) GTEST_SKIP() << "needs a pids cgroup";
  limit.allow(1);
  const std::string bin = STARLING_BIN_DIR;
  for (const auto& command :
       {std::vector<std::string>{bin + "/starling", "status", "--address", address()},
        std::vector<std::string>{bin + "/starling", "list", "nodes", "--address", address()},
        std::vector<std::string>{bin + "/counter", "--address", address()},
        std::vector<std::string>{bin + "/counter"}}) {
    const auto result = run(limit.within(command));
    EXPECT_EQ(result.exit_code, 1) << result.output;
    for (const char* part : {"error: ", "no thread can be made", "ulimit -u", "pids.max: 1 in"})
      EXPECT_NE(result.output.find(part), std::string::npos) << part << " in: " << result.output;
  }
}

TEST_F(LimitsTest, AWorkerThatFindsNoThreadIsStartedAgainWithoutARestart) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "LeakSanitizer needs a thread to let a process end with its own code";
#endif
  start({"--num-cpus", "2"});
  support::ProcessLimit limit;
  if (!limit.is_group()) GTEST_SKIP() << "needs a pids cgroup";
  const int node = node_pid();
  limit.add(node);
  auto actor = counter(3, ActorOptions{.max_restarts = 1});
  const int before = get(actor.call(&Counter::pid));
  limit.allow(1);
  ::kill(before, SIGKILL);
  ASSERT_TRUE(eventually([&] { return node_log().find("it is tried again") != std::string::npos; }))
      << node_log();
  limit.allow(limit.count() + 1);  // a process, but no thread
  ASSERT_TRUE(eventually([&] {
    return node_log().find("no thread can be made") != std::string::npos;
  })) << node_log();
  limit.allow(1000);
  Result<int> total = rt_->get(actor.call(&Counter::total), 30s);
  for (int i = 0; i < 50 && !total.ok() && total.status().code() != ErrorCode::kActorDied; ++i)
    total = rt_->get(actor.call(&Counter::total), 30s);  // the call that was on its way is lost
  ASSERT_TRUE(total.ok()) << total.status().to_string() << node_log();
  EXPECT_EQ(*total, 3);
  rt_.reset();  // its processes leave the group
}

TEST_F(LimitsTest, AProcessOfSharedActorsThatFindsNoThreadIsStartedAgain) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "LeakSanitizer needs a thread to let a process end with its own code";
#endif
  start({"--num-cpus", "2"});
  support::ProcessLimit limit;
  if (!limit.is_group()) GTEST_SKIP() << "needs a pids cgroup";
  limit.add(node_pid());
  limit.allow(limit.count() + 1);
  std::thread raises([&] {
    EXPECT_TRUE(eventually([&] {
      return node_log().find("no thread can be made") != std::string::npos;
    })) << node_log();
    limit.allow(1000);
  });
  auto actor = counter(3, ActorOptions{.isolation = Isolation::kShared});
  raises.join();
  EXPECT_EQ(get(actor.call(&Counter::total)), 3);
  rt_.reset();
}

TEST_F(LimitsTest, AJobThatNoProcessIsLeftForIsAnswered) {
  start({"--num-cpus", "1"});
  support::ProcessLimit limit;
  if (!limit.is_group()) GTEST_SKIP() << "needs a pids cgroup";
  const support::TemporaryFolder files;
  std::ofstream(files.path() / "data") << "some";
  limit.add(node_pid());
  limit.allow(1);
  Command submit({STARLING_BIN_DIR "/starling", "submit", "--address", address(), "--working-dir",
                  files.path().string(), "--", "true"});
  EXPECT_TRUE(eventually([&] { return submit.output().find("error: ") != std::string::npos; }));
  const auto result = submit.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("pids.max"), std::string::npos) << result.output;
  limit.allow(1000);
  rt_.reset();
}

// At every limit up to one that is enough, a command works or says what is too small.
TEST_F(LimitsTest, AProgramThatFindsNoDescriptorSaysSo) {
  const std::string starling = STARLING_BIN_DIR "/starling";
  bool works = false;
  for (int limit = 4; limit <= 40 && !works; ++limit) {
    const std::string command = "ulimit -n " + std::to_string(limit) + " && exec " + starling +
                                " start --head --bind 127.0.0.1 --port 0 --num-cpus 1";
    const auto started = run({"sh", "-c", command});
    works = started.exit_code == 0;
    // Fewer than the program's libraries need are the loader's to name.
    if (works || started.output.find("loading shared libraries") != std::string::npos) continue;
    EXPECT_EQ(started.exit_code, 1) << limit << ": " << started.output;
    EXPECT_NE(started.output.find("error: "), std::string::npos) << limit << ": " << started.output;
    EXPECT_EQ(started.output.find("terminate"), std::string::npos) << limit << started.output;
  }
  EXPECT_TRUE(works);
  EXPECT_EQ(run({starling, "stop", "--force"}).exit_code, 0);
}

TEST_F(LimitsTest, DescriptorsAreRaisedForStarlingAndNotForJobs) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{512, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  start({"--num-cpus", "1"});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const auto hard = static_cast<long>(before.rlim_max);
  EXPECT_EQ(soft_descriptors(node_pid()), hard);
  EXPECT_EQ(soft_descriptors(get(counter().call(&Counter::pid))), hard);
  int heads = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(node_pid()) + "/task")) {
    std::ifstream children(thread.path() / "children");
    for (int child = 0; children >> child; ++heads) EXPECT_EQ(soft_descriptors(child), hard);
  }
  EXPECT_GE(heads, 2) << "the head's process and the actor's";
  const auto job = run({STARLING_BIN_DIR "/starling", "submit", "--address", address(), "--", "sh",
                        "-c", "ulimit -Sn"});
  EXPECT_EQ(job.output, "512\n");
}

}  // namespace
}  // namespace runtime::test
