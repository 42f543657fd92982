#include "runtime/head/drained_nodes.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class DrainedNodesTest : public PartTest {
 protected:
  DrainedNodesTest() : node_(add_node(1)) {}

  std::chrono::milliseconds time_to_move(std::chrono::milliseconds left) {
    drained_.set(node_, time_ + left);
    return drained_.time_to_move(node_);
  }

  const NodeId node_;
  DrainedNodes drained_{context_};
};

TEST_F(DrainedNodesTest, WhatIsLeftRunsOutAtTheDeadline) {
  drained_.set(node_, time_ + 20s);
  time_ += 15s;
  EXPECT_EQ(drained_.left(node_), 5s);
  time_ += 1h;
  EXPECT_EQ(drained_.left(node_), 0ms);
}

TEST_F(DrainedNodesTest, ActorsEndALittleBeforeTheirNode) {
  EXPECT_EQ(time_to_move(60s), 58s);
  EXPECT_EQ(time_to_move(8s), 6s);
  EXPECT_EQ(time_to_move(4s), 3s) << "of a short time a quarter";
  EXPECT_EQ(time_to_move(-1s), 1ms) << "no request is without time";
}

TEST_F(DrainedNodesTest, ANodeIsNamedWithTheReason) {
  context_.commit(command::NodeDrains{node_, {"preemption"}});
  drained_.set(node_, time_ + 20s);
  EXPECT_EQ(drained_.text(node_), "node " + node_.short_hex() + " is drained (preemption)");
  drained_.erase(node_);
  EXPECT_FALSE(drained_.contains(node_));
}

}  // namespace
}  // namespace runtime
