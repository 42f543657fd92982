#include "runtime/api/cluster.h"

#include "tests/runtime/api/api_fixture.h"

namespace runtime {
namespace {

class ClusterApiTest : public test::ApiTest {
 protected:
  ClusterApi cluster_{connection_};
};

TEST_F(ClusterApiTest, NodesAreThoseOfNowWithoutWaitingForAChange) {
  control::NodeList list;
  list.version = 7;
  list.nodes.resize(2);
  set_answer(ControlAnswer{list});
  const auto nodes = cluster_.nodes();
  ASSERT_TRUE(nodes.ok()) << nodes.status().to_string();
  EXPECT_EQ(*nodes, list.nodes);
  EXPECT_EQ(asked<control::WatchNodes>().version, 0u) << "which no cluster has";
}

TEST_F(ClusterApiTest, AnAnswerToSomethingElseIsNone) {
  set_answer(ControlAnswer{control::NodeList{}});
  EXPECT_EQ(cluster_.state().status().code(), ErrorCode::kInternal);
}

TEST_F(ClusterApiTest, OnlyTheDrainOfItsOwnNodeIsNoticed) {
  Process& process = *connection_.process;
  EXPECT_EQ(cluster_.node_id(), node_.id);
  process.on_node_drains(NodeId::random(), {"preemption"});
  EXPECT_FALSE(cluster_.drain_notice());
  process.on_node_drains(node_.id, {"preemption"});
  ASSERT_TRUE(cluster_.drain_notice());
  EXPECT_EQ(cluster_.drain_notice()->reason, "preemption");
}

TEST_F(ClusterApiTest, ARuntimeThatIsNotStartedKnowsNothing) {
  const Connection none;
  ClusterApi cluster(none);
  EXPECT_EQ(cluster.state().status().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(cluster.node_id().is_none());
  EXPECT_FALSE(cluster.drain_notice());
  EXPECT_FALSE(cluster.watch_nodes([](const NodeEvent&) {}).is_active());
}

}  // namespace
}  // namespace runtime
