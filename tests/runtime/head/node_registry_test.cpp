// Nodes join, come back and go, without the managers that care.
#include "runtime/head/node_registry.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class NodeRegistryTest : public PartTest {
 protected:
  NodeRegistry::Hooks hooks() {
    const auto note = [this](const std::string& what) { calls_.push_back(what); };
    return {
        .shown = [](const NodeInfo& info) { return info; },
        .returned = [note](const control::RegisterNode&) { note("returned"); },
        .connected = [note](NodeId) { note("connected"); },
        .ends =
            [note](NodeId, const std::string& why) {
              note("ends");
              return "it is gone: " + why;
            },
        .lost = [note](NodeId, const std::string& text) { note("lost, " + text); },
        .place_pending = [note] { note("place"); },
    };
  }
  Answer join(NodeId node, bool returns = false, NodeId replaces = {}) {
    control::RegisterNode body;
    body.info.node = node;
    body.info.address = "10.0.0.1:1";
    body.returns = returns;
    body.replaces = replaces;
    return ask(nodes_, body, node);
  }

  const NodeId node_ = NodeId::random();
  std::vector<std::string> calls_;
  NodeRegistry nodes_{context_, hooks()};
};

TEST_F(NodeRegistryTest, ANodeJoinsComesBackAndIsLost) {
  EXPECT_TRUE(status(join(node_)).ok());
  EXPECT_TRUE(tables_.nodes().find(node_)->alive);
  EXPECT_EQ(calls_, (std::vector<std::string>{"connected", "place"}));
  calls_.clear();
  EXPECT_TRUE(status(join(node_, true)).ok());
  EXPECT_EQ(calls_, (std::vector<std::string>{"returned", "connected", "place"}));
  calls_.clear();
  nodes_.lose(node_, "it is silent");
  EXPECT_TRUE(tables_.nodes().all().empty());
  EXPECT_EQ(calls_, (std::vector<std::string>{"ends", "lost, it is gone: it is silent", "place"}));
  nodes_.lose(node_, "it is silent");
  EXPECT_EQ(calls_.size(), 3u) << "once";
}

TEST_F(NodeRegistryTest, OneThatWasDeclaredDeadDoesNotComeBack) {
  EXPECT_EQ(status(join(node_, true)).code(), ErrorCode::kCancelled);
  EXPECT_TRUE(tables_.nodes().all().empty());
}

TEST_F(NodeRegistryTest, AMachinesNewNodeReplacesItsOldOne) {
  join(node_);
  const NodeId next = NodeId::random();
  EXPECT_TRUE(status(join(next, false, node_)).ok());
  EXPECT_EQ(tables_.nodes().all().size(), 1u);
  EXPECT_TRUE(tables_.nodes().contains(next));
}

TEST_F(NodeRegistryTest, WatchersGetWhatHasChanged) {
  join(node_);
  const std::uint64_t version = tables_.nodes().version();
  const Answer watch = ask(nodes_, control::WatchNodes{version}, node_);
  const Answer patient = ask(nodes_, control::WatchNodes{version}, node_, {}, 1h);
  EXPECT_FALSE(watch->has_value());
  nodes_.tick(nodes_.next_tick());
  EXPECT_EQ(status(watch).code(), ErrorCode::kDeadlineExceeded);
  const NodeId other = NodeId::random();
  join(other);
  ASSERT_TRUE(status(patient).ok());
  EXPECT_EQ(std::get<control::NodeList>(***patient).nodes.size(), 2u);
}

}  // namespace
}  // namespace runtime
