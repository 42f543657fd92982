// The command lines of `starling` that ask about a cluster, its nodes and its token.
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/observe/metrics_key.h"
#include "tests/placement/app/command_line.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
namespace control = runtime::control;

class ClusterCommandsTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  Said say(Command (*add)(CLI::App& app), const Words& words) const {
    return said_to(add, words, cluster_);
  }
  void add_job(const std::string& command, bool running) {
    runtime::JobInfo job;
    job.job = runtime::JobId::random();
    job.command = command;
    job.pid = 12;
    job.running = running;
    cluster_.state.jobs.push_back(job);
  }

  FakeCluster cluster_;
};

TEST_F(ClusterCommandsTest, DrainHasADeadlineAndAReasonUnlessTheyAreGiven) {
  control::NodeList list;
  list.nodes = cluster_.state.nodes;
  cluster_.on<control::WatchNodes>([&](const auto&) { return list; });
  control::DrainNode drained;
  cluster_.on<control::DrainNode>([&](const control::DrainNode& request) {
    drained = request;
    list.nodes.clear();
    return std::monostate();
  });
  const std::string node = cluster_.node().id.hex();
  EXPECT_EQ(say(add_drain, {"drain", node}).code, 0);
  EXPECT_EQ(drained.time, 30s);
  EXPECT_EQ(drained.reason, "on request");
  list.nodes = cluster_.state.nodes;
  const Said said =
      say(add_drain, {"drain", node, "--deadline", "2min", "--reason", "preemption", "--wait"});
  EXPECT_EQ(said.out, "node " + node.substr(0, 8) + " has left\n");
  EXPECT_EQ(drained.time, 2min);
  EXPECT_EQ(drained.reason, "preemption");
  expect_refused(say(add_drain, {"drain"}), 2, {"node"});
}

TEST_F(ClusterCommandsTest, StopEndsJobsByForceOnly) {
  add_job("./train", true);
  int asked = 0;
  cluster_.on<control::StopNode>([&](const auto&) {
    ++asked;
    cluster_.node().hang_up();
    return std::monostate();
  });
  expect_refused(say(add_stop, {"stop"}), 1, {"./train", "--force"});
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(say(add_stop, {"stop", "--force"}).code, 0);
  EXPECT_EQ(asked, 1);
}

TEST_F(ClusterCommandsTest, ListShowsWhatAllFiltersLetThrough) {
  add_job("./train", true);
  add_job("./train", false);
  add_job("./eval", true);
  const Said said = say(add_list, {"list", "jobs", "--json", "--state", "running", "--filter",
                                   "command=./train", "--filter", "pid=12"});
  ASSERT_EQ(said.code, 0) << said.err;
  const auto shown = nlohmann::json::parse(said.out);
  ASSERT_EQ(shown.size(), 1u) << shown;
  EXPECT_EQ(shown[0]["id"], cluster_.state.jobs[0].job.hex());
  expect_refused(say(add_list, {"list", "widgets"}), 2, {"cannot list 'widgets'"});
  expect_refused(say(add_list, {"list"}), 2, {"kind"});
  expect_refused(say(add_list, {"list", "actors", "--limit", "-1"}), 2, {"--limit"});
}

TEST_F(ClusterCommandsTest, ListOfActorsGoesOnBehindOne) {
  control::ListActors asked;
  cluster_.on_observe<control::ListActors>([&](const control::ListActors& request) {
    asked = request;
    return runtime::ActorPage();
  });
  const runtime::ActorId last = runtime::ActorId::random();
  EXPECT_EQ(say(add_list, {"list", "actors", "--limit", "7", "--after", last.hex()}).code, 0);
  EXPECT_EQ(asked.limit, 7u);
  EXPECT_EQ(asked.after, last);
}

TEST_F(ClusterCommandsTest, MetricsAreTheNodesOrTheKeyToThem) {
  cluster_.on_observe<control::ReadMetrics>([](const auto&) { return std::string("up 1\n"); });
  EXPECT_EQ(say(add_metrics, {"metrics"}).out, "up 1\n");
  EXPECT_EQ(say(add_metrics, {"metrics", "--key"}).out,
            runtime::metrics_key(runtime::FakeNode::kToken) + "\n");
}

TEST_F(ClusterCommandsTest, ATokenIsChangedOnlyWhereThatIsSaid) {
  std::optional<control::ChangeToken> changed;
  cluster_.on<control::ChangeToken>([&](const control::ChangeToken& request) {
    changed = request;
    return std::monostate();
  });
  const support::TemporaryFolder folder;
  const std::string file = folder.file("token");
  std::ofstream(file) << "another\n";
  for (const Words& mistaken : {Words{"token", "--from", file}, Words{"token", "--grace", "5s"},
                                Words{"token", "--new", "--submitter"}})
    expect_refused(say(add_token, mistaken), 2, {mistaken[1]});
  EXPECT_EQ(say(add_token, {"token"}).out, runtime::FakeNode::kToken + std::string("\n"));
  EXPECT_FALSE(changed);
  EXPECT_EQ(say(add_token, {"token", "--new", "--from", file, "--grace", "5s"}).out, "another\n");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->grace, 5s);
}

}  // namespace
}  // namespace placement
