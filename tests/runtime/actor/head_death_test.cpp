// A cluster whose head is killed, with and without the node next to it, and nodes that the cluster
// has given up. The processes are real, and get kill -9 and SIGSTOP.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "cluster_fixture.h"

namespace runtime::test {
namespace {

namespace fs = std::filesystem;

const std::string kStarling = STARLING_BIN_DIR "/starling";

/// A head with a journal and another node, to which the driver in this process is connected.
class HeadDeathTest : public ClusterTest {
 protected:
  void SetUp() override {
    ::unsetenv("STARLING_ADDRESS");
    ::setenv("STARLING_PROGRAM", kStarling.c_str(), 1);
    ::setenv("STARLING_SESSION_ROOT", (root_ / "s").c_str(), 1);
    start_head("0");
    address_ = address_in(*head_);
    ASSERT_NE(address_, "") << head_->output();
    node_ = start_node();
    node_address_ = address_in(*node_);
    ASSERT_NE(node_address_, "") << node_->output();
    connect();
  }
  void TearDown() override {
    rt_.reset();
    node_.reset();
    head_.reset();
    EXPECT_TRUE(eventually([&] { return heads().empty(); })) << "a head outlives its node";
  }

  void start_head(const std::string& port) {
    head_ = std::make_unique<Command>(std::vector<std::string>{
        kStarling, "start", "--head", "--port", port, "--journal", (root_ / "journal").string(),
        "--num-cpus", "4", "--resources", R"({"head": 1})", "--block"});
  }
  std::unique_ptr<Command> start_node() {
    return std::make_unique<Command>(std::vector<std::string>{
        kStarling, "start", "--address", address_, "--num-cpus", "4", "--block"});
  }
  void connect() {
    static char name[] = "test_runtime_actor";
    static char* argv[] = {name, nullptr};
    RuntimeOptions options;
    options.address = node_address_;
    options.start_cluster = false;
    rt_ = std::make_unique<Runtime>(1, argv, options);
    register_test_actors(*rt_);
    register_test_tasks(*rt_);
    const Status status = rt_->start();
    ASSERT_TRUE(status.ok()) << status.to_string() << head_->output();
  }
  /// The address is the last line of what `start` prints; empty: none in ten seconds.
  std::string address_in(const Command& command) {
    std::string found;
    eventually([&] {
      const std::string text = command.output();
      const std::size_t at = text.rfind("\n127.0.0.1:");
      if (at == std::string::npos || text.find('\n', at + 1) == std::string::npos) return false;
      found = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      return true;
    });
    return found;
  }
  /// The processes that are a head's, of this test's clusters.
  std::vector<pid_t> heads() const {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string line((std::istreambuf_iterator<char>(file)), {});
      const std::string sessions = (root_ / "s").string();
      if (line.find(std::string("\0head\0", 6)) != std::string::npos &&
          line.find(sessions) != std::string::npos)
        found.push_back(std::stoi(entry.path().filename()));
    }
    return found;
  }
  void kill_head_process() {
    const std::vector<pid_t> found = heads();
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(::kill(found[0], SIGKILL), 0);
  }
  std::vector<NodeInfo> nodes() {
    auto state = rt_->cluster().state();
    return state.ok() ? state->nodes : std::vector<NodeInfo>();
  }

  std::string address_, node_address_;
  std::unique_ptr<Command> head_, node_;
};

TEST_F(HeadDeathTest, CallsGoOnAndTheNextHeadKnowsEverything) {
  auto here = counter(1, {.name = "here", .node = rt_->cluster().node_id()});
  auto there = counter(2, {.name = "there", .node = nodes()[0].node});
  ASSERT_TRUE(rt_->kv().put("key", "value").ok());
  EXPECT_EQ(get(here.call(&Counter::add, 1)), 2);
  for (int round = 0; round < 5; ++round) {
    kill_head_process();
    EXPECT_EQ(get(here.call(&Counter::add, 1)), 3 + round) << "calls need no head";
    EXPECT_EQ(get(there.call(&Counter::add, 1)), 3 + round);
    auto made = rt_->spawn<Counter>({.name = "made-" + std::to_string(round)}, 100 + round);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    EXPECT_EQ(get(made->call(&Counter::total)), 100 + round);
  }
  EXPECT_EQ(*rt_->kv().get("key"), "value");
  EXPECT_EQ(get(rt_->get_actor<Counter>("there")->call(&Counter::total)), 7);
  EXPECT_EQ(get(rt_->get_actor<Counter>("made-0")->call(&Counter::total)), 100);
  EXPECT_EQ(nodes().size(), 2u);
}

class HeadDeathTiming : public HeadDeathTest {};

TEST_F(HeadDeathTiming, ActorsAreMadeAgainWithinThreeSeconds) {
  for (int round = 0; round < 5; ++round) {
    kill_head_process();
    const auto start = std::chrono::steady_clock::now();
    auto made = rt_->spawn<Counter>({}, round);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 3s) << "round " << round;
  }
}

TEST_F(HeadDeathTest, WhatWasAcknowledgedIsThere) {
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      const Status put = rt_->kv().put("key-" + std::to_string(i), std::to_string(i));
      ASSERT_TRUE(put.ok()) << put.to_string();
      written = i + 1;
    }
  });
  for (int round = 0; round < 10; ++round) {
    const int before = written;
    ASSERT_TRUE(eventually([&] { return written > before && heads().size() == 1; }));
    kill_head_process();
  }
  stop = true;
  writer.join();
  EXPECT_GT(written, 10);
  for (int i = 0; i < written; ++i)
    ASSERT_EQ(rt_->kv().get("key-" + std::to_string(i), 20s).value_or("nothing"),
              std::to_string(i));
}

TEST_F(HeadDeathTest, AHeadStartedOnTheJournalGoesOnWithTheCluster) {
  auto here = counter(1, {.name = "here", .node = rt_->cluster().node_id()});
  auto there = counter(
      2, {.name = "there", .max_restarts = 1, .max_task_retries = 1, .resources = {{"head", 1}}});
  ASSERT_TRUE(rt_->kv().put("key", "value").ok());
  EXPECT_EQ(get(here.call(&Counter::add, 1)), 2);
  head_->signal(SIGKILL);
  head_->wait();
  ASSERT_TRUE(eventually([&] { return heads().empty(); }));
  EXPECT_EQ(get(here.call(&Counter::add, 1)), 3) << "with its node and the head's gone";
  auto waiting =
      std::async(std::launch::async, [&] { return rt_->spawn<Counter>({.name = "waited"}, 7); });
  start_head(address_.substr(address_.rfind(':') + 1));
  ASSERT_NE(address_in(*head_), "") << head_->output();
  auto waited = waiting.get();
  ASSERT_TRUE(waited.ok()) << waited.status().to_string();
  EXPECT_EQ(get(waited->call(&Counter::total)), 7);
  EXPECT_EQ(*rt_->kv().get("key"), "value");
  EXPECT_EQ(get(rt_->get_actor<Counter>("here")->call(&Counter::add, 1)), 4)
      << "the same incarnation";
  EXPECT_EQ(get(there.call(&Counter::total)), 2) << "made again on the new node of that machine";
  EXPECT_EQ(nodes().size(), 2u);
}

TEST_F(HeadDeathTest, TwoHeadsOnOneJournalAreRefused) {
  Command second({kStarling, "start", "--head", "--port", "0", "--journal",
                  (root_ / "journal").string(), "--block"});
  const CommandResult result = second.wait();
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("journal"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("another head"), std::string::npos) << result.output;
  EXPECT_EQ(get(counter(5).call(&Counter::total)), 5) << "the first goes on";
}

TEST_F(HeadDeathTest, ANodeThatWasGivenUpComesBackAsANewOne) {
  auto other = start_node();
  ASSERT_TRUE(eventually([&] { return nodes().size() == 3; })) << other->output();
  const std::vector<NodeInfo> all = nodes();
  auto found = std::find_if(all.begin(), all.end(),
                            [&](const NodeInfo& node) { return node.pid == other->pid(); });
  ASSERT_NE(found, all.end());
  const NodeId old = found->node;
  const std::string old_address = found->address;
  auto actor = counter(10, {.name = "moved", .max_restarts = 1, .max_task_retries = 1});
  auto stays = counter(20, {.name = "lost", .node = old});
  EXPECT_EQ(get(stays.call(&Counter::add, 1)), 21);
  const pid_t worker = stays.pid();
  other->signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return nodes().size() == 2; }) ||
              eventually([&] { return nodes().size() == 2; }))
      << "its lease has ended";
  other->signal(SIGCONT);
  ASSERT_TRUE(eventually([&] { return nodes().size() == 3; })) << other->output();
  EXPECT_TRUE(eventually([&] { return ::kill(worker, 0) != 0; }))
      << "what it ran when it was given up has ended";
  const std::vector<NodeInfo> now = nodes();
  EXPECT_EQ(
      std::count_if(now.begin(), now.end(), [&](const NodeInfo& node) { return node.node == old; }),
      0);
  auto again = std::find_if(now.begin(), now.end(),
                            [&](const NodeInfo& node) { return node.pid == other->pid(); });
  ASSERT_NE(again, now.end()) << "the same process under another id";
  EXPECT_EQ(again->address, old_address);
  EXPECT_EQ(get(counter(3, {.node = again->node}).call(&Counter::total)), 3);
  expect_failure(rt_->get(stays.call(&Counter::total)).status(), ErrorCode::kActorDied, {"silent"});
  EXPECT_EQ(get(actor.call(&Counter::total)), 10);
}

}  // namespace
}  // namespace runtime::test
