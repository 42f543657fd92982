#include "placement/app/cli_drain.h"

#include "tests/placement/app/fake_cluster.h"
#include "tests/support/expect_failure.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
using runtime::ErrorCode;
using runtime::NodeInfo;
using support::expect_failure;
namespace control = runtime::control;

NodeInfo node_at(const std::string& digits, const std::string& host, int port) {
  NodeInfo info;
  info.node = *runtime::NodeId::from_hex(digits + std::string(32 - digits.size(), '0'));
  info.hostname = host;
  info.address = host + ":" + std::to_string(port);
  return info;
}

TEST(FindNode, ByIdItsFirstDigitsAddressOrHost) {
  const std::vector<NodeInfo> nodes{node_at("7f3a", "one", 7000), node_at("7f3b", "two", 7000),
                                    node_at("0abc", "two", 7001)};
  for (const std::string& name :
       {std::string("7f3a"), nodes[0].node.hex(), std::string("one:7000"), std::string("one")}) {
    const auto found = find_node(nodes, name);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->node, nodes[0].node) << name;
  }
  for (const char* name : {"7f3", "two"})
    expect_failure(find_node(nodes, name).status(), ErrorCode::kInvalidArgument,
                   {"'" + std::string(name) + "' may be any of ", nodes[1].node.short_hex(),
                    "two:7000", "HOST:PORT"});
  for (const std::string& name : {std::string(), std::string(257, '7')})
    expect_failure(find_node(nodes, name).status(), ErrorCode::kInvalidArgument,
                   {"a node is named by"});
}

TEST(FindNode, AMistypedOneIsOfferedTheNearest) {
  const std::vector<NodeInfo> nodes{node_at("7f3a", "alpha", 7000), node_at("83b1", "beta", 7000),
                                    node_at("90cc", "gamma", 7000), node_at("a1dd", "delta", 7000)};
  const runtime::Status failure = find_node(nodes, "gama:7000").status();
  expect_failure(failure, ErrorCode::kNotFound,
                 {"no node 'gama:7000'; the nearest: " + nodes[2].node.short_hex() +
                  " (gamma:7000, gamma), "});
  std::size_t offered = 0;
  for (const NodeInfo& node : nodes)
    offered += failure.message().find(node.node.short_hex()) != std::string::npos ? 1 : 0;
  EXPECT_EQ(offered, 3u);
}

class DrainCommandTest : public ::testing::Test {
 protected:
  DrainCommandTest() {
    options_.address = cluster_.address();
    options_.node = "far:7000";
    cluster_.on<control::WatchNodes>([this](const control::WatchNodes& request) {
      if (drained_ && --looks_until_it_has_left_ == 0) list_.nodes.clear();
      control::NodeList list = list_;
      if (request.version != 1) list.departed.clear();  // they are asked for
      return list;
    });
    cluster_.on<control::DrainNode>([this](const control::DrainNode& request) {
      drained_ = request;
      list_.nodes.front().drain.emplace();
      list_.nodes.front().drain->reason = request.reason;
      list_.nodes.front().drain->left = request.time;
      list_.nodes.front().drain->waits_for = "1 job";
      return std::monostate();
    });
    list_.nodes = {node_at("7f3a", "far", 7000)};
  }
  Said drain() {
    return said_by([&] { return drain_command(options_); });
  }

  FakeCluster cluster_;
  DrainOptions options_;
  control::NodeList list_;
  std::optional<control::DrainNode> drained_;
  int looks_until_it_has_left_ = -1;
};

TEST_F(DrainCommandTest, SaysWhatTheNodeWaitsForAndReturns) {
  options_.deadline = "5s";
  options_.reason = "preemption";
  const Said said = drain();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out,
            "node 7f3a0000 (far:7000) is drained (preemption): it leaves within 5 s; now it waits "
            "for 1 job\n");
  ASSERT_TRUE(drained_);
  EXPECT_EQ(drained_->node, list_.nodes.front().node);
  EXPECT_EQ(drained_->time, 5s);
  EXPECT_EQ(drained_->reason, "preemption");
  EXPECT_FALSE(drained_->if_idle);
}

TEST_F(DrainCommandTest, CanWaitUntilTheNodeHasLeft) {
  options_.wait = true;
  looks_until_it_has_left_ = 3;
  const Said said = drain();
  EXPECT_EQ(said.code, 0) << said.err;
  expect_said(said.out, {"it leaves within 30 s", "node 7f3a0000 has left\n"});
  EXPECT_EQ(looks_until_it_has_left_, 0) << "and not earlier";
}

TEST_F(DrainCommandTest, ANodeThatIsGoneAtOnceIsToldOf) {
  looks_until_it_has_left_ = 1;
  EXPECT_EQ(drain().out, "node 7f3a0000 had nothing to keep it, and has left\n");
}

TEST_F(DrainCommandTest, NothingIsDrainedByAMistake) {
  for (const char* deadline : {"0", "soon", "-3s"}) {
    options_.deadline = deadline;
    const Said said = drain();
    EXPECT_EQ(said.code, 1) << deadline;
    expect_said(said.err, {"--deadline"});
  }
  options_.deadline = "5s";
  options_.node = "fat:7000";
  const Said said = drain();
  EXPECT_EQ(said.code, 1);
  expect_said(said.err, {"no node 'fat:7000'", "far:7000"});
  EXPECT_FALSE(drained_);
}

TEST_F(DrainCommandTest, OneThatHasLeftIsToldOfWithTheLastReason) {
  runtime::NodeDeparture first, last;
  first.node = node_at("80", "gone", 7000);
  first.why = "its process died";
  last.node = node_at("81", "gone", 7000);
  last.why = "it was drained (preemption) and has left";
  list_.departed = {first, last};
  for (const char* name : {"gone:7000", "81"}) {
    options_.node = name;
    const Said said = drain();
    EXPECT_EQ(said.code, 1);
    EXPECT_EQ(said.err, "error: node '" + std::string(name) +
                            "' is not in the cluster any more: it was drained (preemption) and has "
                            "left\n");
  }
}

TEST_F(DrainCommandTest, FirstDigitsOfSeveralThatHaveLeftAreRefusedWithTheirNames) {
  for (const char* digits : {"80", "81", "80"}) {
    runtime::NodeDeparture gone;
    gone.node = node_at(digits, "gone", 7000 + static_cast<int>(list_.departed.size()));
    gone.why = "its process died";
    list_.departed.push_back(gone);
  }
  options_.node = "8";
  EXPECT_EQ(drain().err,
            "error: '8' may be any of 80000000 (gone:7002, gone), 81000000 (gone:7001, gone), "
            "which have left the cluster; give more digits of the id\n")
      << "a node that left twice is one";
  options_.node = "80";
  expect_said(drain().err, {"node '80' is not in the cluster any more: its process died"});
  for (int i = 0; i < 6; ++i) {
    runtime::NodeDeparture gone;
    gone.node = node_at("9" + std::to_string(i), "many", 7000);
    list_.departed.push_back(gone);
  }
  options_.node = "9";
  const Said said = drain();
  EXPECT_EQ(said.code, 1);
  expect_said(said.err, {"91000000 (many:7000, many) and others, which have left"});
  EXPECT_FALSE(drained_);
}

TEST_F(DrainCommandTest, TheHeadsRefusalIsTheAnswer) {
  cluster_.on<control::DrainNode>(
      [](const auto&) { return runtime::invalid_argument("the node hosts the head"); });
  const Said said = drain();
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.err, "error: the node hosts the head\n");
}

}  // namespace
}  // namespace placement
