// Nodes that get nothing new for a moment.
#include "runtime/head/closed_nodes.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ClosedNodesTest : public PartTest {
 protected:
  ClosedNodesTest() : node_(add_node(1)) {}

  /// Whether something finds a place there.
  bool is_open() {
    ActorSpec probe;
    probe.actor = ActorId::random();
    const bool has_room = scheduler_.place_actor(probe).ok();
    scheduler_.release_actor(probe.actor);
    return has_room;
  }

  const NodeId node_;
  ClosedNodes closed_{context_};
};

TEST_F(ClosedNodesTest, ANodeOpensAgainByItself) {
  EXPECT_EQ(closed_.next_tick(), Deadline::max());
  EXPECT_TRUE(is_open());
  closed_.close(node_);
  EXPECT_FALSE(is_open());
  const Deadline due = closed_.next_tick();
  EXPECT_GT(due, time_);
  EXPECT_FALSE(closed_.tick(due - 1ns));
  EXPECT_FALSE(is_open());
  EXPECT_TRUE(closed_.tick(due));
  EXPECT_TRUE(is_open());
  EXPECT_FALSE(closed_.tick(due));
  EXPECT_EQ(closed_.next_tick(), Deadline::max());
}

TEST_F(ClosedNodesTest, OneThatRefusesAgainStaysClosedForLonger) {
  closed_.close(node_);
  const Deadline first = closed_.next_tick();
  time_ += 500ms;
  closed_.close(node_);
  EXPECT_EQ(closed_.next_tick(), first + 500ms);
  EXPECT_FALSE(closed_.tick(first));
  EXPECT_FALSE(is_open());
}

TEST_F(ClosedNodesTest, TheNextTickIsTheFirstNodes) {
  const NodeId other = add_node(1);
  closed_.close(other);
  const Deadline first = closed_.next_tick();
  time_ += 500ms;
  closed_.close(node_);
  EXPECT_EQ(closed_.next_tick(), first);
  EXPECT_TRUE(closed_.tick(first));
  EXPECT_EQ(closed_.next_tick(), first + 500ms);
}

TEST_F(ClosedNodesTest, OneThatIsLostIsForgotten) {
  closed_.close(node_);
  closed_.forget(node_);
  EXPECT_EQ(closed_.next_tick(), Deadline::max());
  EXPECT_FALSE(closed_.tick(time_ + 1h));
}

TEST_F(ClosedNodesTest, AtTheEndAllStayClosed) {
  add_node(1);
  closed_.close(node_);
  closed_.close_all();
  EXPECT_FALSE(is_open());
  closed_.tick(time_ + 1h);
  EXPECT_FALSE(is_open()) << "also the one that was to open again";
}

}  // namespace
}  // namespace runtime
