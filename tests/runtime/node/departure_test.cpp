#include "runtime/node/departure.h"

#include "runtime/transport/blocking.h"
#include "tests/runtime/node/fake_head.h"

namespace runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DepartureTest : public ::testing::Test {
 protected:
  DepartureTest() {
    DepartureOptions options;
    options.node = node_;
    options.address = "h:1";
    Departure::Callbacks callbacks;
    callbacks.head = head_.ask();
    callbacks.node_drains = [this](const control::NodeDrains&) { ++told_; };
    callbacks.begin = [this] { ++begun_; };
    callbacks.warn_jobs = [this] { warned_.set(); };
    callbacks.leave = [this](Status why) {
      left_ = std::move(why);
      leaves_.set();
    };
    departure_ = std::make_unique<Departure>(loop_, options, callbacks);
  }
  ~DepartureTest() override {
    on_loop(loop_, [&] {
      departure_.reset();
      return 0;
    });
  }
  void hear(NodeId node, milliseconds left) {
    on_loop(loop_, [&] {
      control::NodeDrains drains;
      drains.node = node;
      drains.drain = {"maintenance", left};
      departure_->on_node_drains(drains);
      return 0;
    });
  }

  EventLoop loop_;
  FakeHead head_;
  const NodeId node_ = NodeId::random();
  int told_ = 0, begun_ = 0;
  Event warned_{loop_}, leaves_{loop_};
  Status left_;
  std::unique_ptr<Departure> departure_;
};

TEST_F(DepartureTest, OtherNodesLeaveWithoutThisOne) {
  hear(NodeId::random(), seconds(60));
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(begun_, 0);
  EXPECT_TRUE(departure_->refuse("jobs").ok());
  EXPECT_FALSE(departure_->is_leaving());
}

TEST_F(DepartureTest, ADrainedNodeTakesNothingNewAndWarnsItsJobs) {
  hear(node_, milliseconds(20));
  EXPECT_EQ(begun_, 1);
  EXPECT_TRUE(departure_->is_leaving());
  EXPECT_EQ(departure_->reason(), "maintenance");
  EXPECT_EQ(departure_->refuse("jobs").message(),
            "node " + node_.short_hex() +
                " (h:1) is drained (maintenance) and takes no jobs; use another node");
  EXPECT_TRUE(loop_.run_until(warned_, deadline_after(seconds(10))));
}

TEST_F(DepartureTest, ANodeThatAsksLeavesWithoutAnAnswerToo) {
  Event answered(loop_);
  on_loop(loop_, [&] {
    departure_->ask("preemption", milliseconds(1), [&](const Status&) { answered.set(); });
    return 0;
  });
  EXPECT_EQ(head_.next<control::DrainNode>().reason, "preemption");
  EXPECT_TRUE(departure_->is_leaving());
  EXPECT_TRUE(loop_.run_until(leaves_, deadline_after(seconds(20))));
  EXPECT_EQ(left_.message(), "drained (preemption), and the head has not answered in time");
  on_loop(loop_, [&] {
    head_.answer(deadline_exceeded("late"));
    return 0;
  });
  EXPECT_TRUE(answered.is_set());
}

TEST_F(DepartureTest, AStoppedNodeAsksForNothing) {
  Event answered(loop_);
  on_loop(loop_, [&] {
    departure_->stop();
    departure_->ask("late", seconds(1), [&](const Status& status) {
      EXPECT_TRUE(status.ok());
      answered.set();
    });
    return 0;
  });
  EXPECT_TRUE(answered.is_set());
  EXPECT_EQ(head_.waiting(), 0u);
}

}  // namespace
}  // namespace runtime
