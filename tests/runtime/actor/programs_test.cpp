// Several programs and several nodes: the examples, older programs, programs that are killed,
// objects between nodes.
#include <fstream>
#include <numeric>

#include "cluster_fixture.h"
#include "tests/support/gate.h"

namespace runtime::test {
namespace {

class ProgramsTest : public ClusterTest {
 protected:
  /// Adds a node to the cluster and waits until it is there.
  std::unique_ptr<Command> add_node(NodeId* id) {
    auto node = std::make_unique<Command>(std::vector<std::string>{
        kBin + "/starling", "start", "--address", address(), "--num-cpus", "2", "--block"});
    bool joined = eventually([&] {
      auto state = rt_->cluster().state();
      if (!state.ok()) return false;
      for (const NodeInfo& info : state->nodes) {
        if (info.node != rt_->cluster().node_id()) *id = info.node;
      }
      return !id->is_none();
    });
    EXPECT_TRUE(joined) << node->output();
    return node;
  }
};

TEST_F(ProgramsTest, CounterStartsAClusterForItself) {
  ::setenv("STARLING_SESSION_ROOT", (root_ / "empty").c_str(), 1);
  auto result = run({kBin + "/counter"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("total: 55\n"), std::string::npos) << result.output;
  for (const auto& entry : std::filesystem::directory_iterator(root_)) {
    EXPECT_EQ(entry.path().filename().string().find("empty"), std::string::npos)
        << "left behind: " << entry.path();
  }
}

TEST_F(ProgramsTest, CounterRunsInACluster) {
  for (auto argv : {std::vector{kBin + "/counter", std::string("--address"), address()},
                    std::vector{kBin + "/starling", std::string("submit"), std::string("--address"),
                                address(), std::string("--"), kBin + "/counter"}}) {
    auto result = run(argv);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find("total: 55\n"), std::string::npos) << result.output;
  }
}

TEST_F(ProgramsTest, ParameterServerConverges) {
  auto result = run({kBin + "/parameter_server", "--address", address(), "3", "15"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("round 15"), std::string::npos) << result.output;
}

TEST_F(ProgramsTest, UnreachableAndUnknownClustersAreExplained) {
  auto nowhere = run({kBin + "/counter", "--address", "127.0.0.1:1"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_NE(nowhere.output.find("127.0.0.1:1"), std::string::npos) << nowhere.output;
  ::setenv("STARLING_TOKEN", "not the token", 1);
  auto stranger = run({kBin + "/counter", "--address", address()});
  ::unsetenv("STARLING_TOKEN");
  EXPECT_EQ(stranger.exit_code, 1);
  EXPECT_NE(stranger.output.find("token"), std::string::npos) << stranger.output;
}

TEST_F(ProgramsTest, AnOlderProgramsActorRefusesAChangedMethod) {
  Command older({std::filesystem::read_symlink("/proc/self/exe").string(), "--older-program",
                 "--address", address()});
  ASSERT_TRUE(eventually([&] { return older.output().find("ready") != std::string::npos; }))
      << older.output();
  auto actor = rt_->get_actor<Counter>("old", "shared");
  ASSERT_TRUE(actor.ok()) << actor.status().to_string();
  expect_failure(rt_->get(actor->call(&Counter::add, 1)).status(), ErrorCode::kInvalidArgument,
                 {"Counter", "add", "no method"});
  expect_failure(rt_->get(actor->call(&Counter::total)).status(), ErrorCode::kInvalidArgument,
                 {"total"});
}

TEST_F(ProgramsTest, AKilledDriversActorsEnd) {
  Command older({std::filesystem::read_symlink("/proc/self/exe").string(), "--older-program",
                 "--address", address()});
  ASSERT_TRUE(eventually([&] { return older.output().find("ready") != std::string::npos; }))
      << older.output();
  auto actor = rt_->get_actor<Counter>("old", "shared");
  ASSERT_TRUE(actor.ok()) << actor.status().to_string();
  pid_t pid = actor->pid();
  older.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
  EXPECT_TRUE(eventually([&] {
    return rt_->get_actor<Counter>("old", "shared", 1s).status().code() == ErrorCode::kNotFound;
  }));
}

TEST_F(ProgramsTest, AProgramThatIsReplacedWhileItRunsGoesOn) {
  NodeId second;
  auto node = add_node(&second);
  namespace fs = std::filesystem;
  const fs::path copy = root_ / "driver", go = root_ / "go";
  fs::copy_file("/proc/self/exe", copy);
  Command driver({copy.string(), "--replaced", go.string(), "--address", address()});
  ASSERT_TRUE(eventually([&] { return driver.output().find("ready ") != std::string::npos; }))
      << driver.output();
  const std::string text = driver.output();
  const int worker = std::stoi(text.substr(text.find("ready ") + 6));
  // As a linker does it: another file takes its place.
  fs::copy_file(STARLING_BIN_DIR "/starling", root_ / "new");
  fs::rename(root_ / "new", copy);
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  std::ofstream(go) << "go";
  const CommandResult result = driver.wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("all is well"), std::string::npos) << result.output;
}

/// The processes that this one started.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

TEST_F(ProgramsTest, AKilledDriversOwnClusterEnds) {
  ::setenv("STARLING_SESSION_ROOT", (root_ / "killed").c_str(), 1);
  Command driver({std::filesystem::read_symlink("/proc/self/exe").string(), "--older-program"});
  ASSERT_TRUE(eventually([&] { return driver.output().find("ready") != std::string::npos; }))
      << driver.output();
  auto nodes = children_of(driver.pid());
  ASSERT_EQ(nodes.size(), 1u);
  auto workers = children_of(nodes[0]);
  EXPECT_FALSE(workers.empty());
  driver.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return ::kill(nodes[0], 0) != 0; })) << "the node goes on";
  for (pid_t worker : workers)
    EXPECT_TRUE(eventually([&] { return ::kill(worker, 0) != 0; })) << "a worker goes on";
}

TEST_F(ProgramsTest, ActorsOnAnotherNodeAreCalledOverTcp) {
  NodeId second;
  auto node = add_node(&second);
  auto far = counter(7, {.node = second});
  EXPECT_EQ(far.node(), second);
  EXPECT_EQ(get(far.call(&Counter::add, 1)), 8);
  auto near = broker("near");
  EXPECT_EQ(get(near.call(&Broker::add_through, far, 2)), 10)
      << "a handle leads there from every process";
  expect_failure(rt_->get(far.call(&Counter::crash_here)), ErrorCode::kActorDied,
                 {"SIGSEGV", "crash_here"});
}

TEST_F(ProgramsTest, ObjectsMoveBetweenNodes) {
  NodeId second;
  auto node = add_node(&second);
  auto far = broker("far", {.node = second});
  auto near = broker("near");
  constexpr std::uint64_t kCount = 2'500'000;  // 10 MB: several chunks
  auto made = far.call(&Broker::make, kCount, 2.0F);
  EXPECT_EQ(get(near.call(&Broker::sum_ref, made)), 2.0 * kCount)
      << "read from another node by a third process";
  auto view = rt_->objects().view(made);
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_EQ(std::accumulate(view->begin(), view->end(), 0.0), 2.0 * kCount);
  EXPECT_EQ(get(far.call(&Broker::sum, std::vector<float>(kCount, 3.0F))), 3.0 * kCount)
      << "a large argument";
  auto put = rt_->put(std::vector<float>(kCount, 4.0F));
  ASSERT_TRUE(put.ok());
  EXPECT_EQ(get(far.call(&Broker::sum_view, *put)), 4.0 * kCount) << "a reference into this node";
}

TEST_F(ProgramsTest, ALostNodesActorsAreLost) {
  NodeId second;
  auto node = add_node(&second);
  auto far = counter(0, {.node = second});
  ASSERT_EQ(get(far.call(&Counter::add, 1)), 1);
  const support::Gate gate(folder_.file("gate"));
  auto pending = far.call(&Counter::pass, gate.path());
  ASSERT_TRUE(gate.is_reached());
  node->signal(SIGKILL);
  Status status = rt_->get(pending, 30s).status();
  EXPECT_TRUE(status.code() == ErrorCode::kActorDied || status.code() == ErrorCode::kUnavailable)
      << status.to_string();
}

}  // namespace
}  // namespace runtime::test
