// The end of a drained node: empty, or at its deadline.
#include "runtime/head/drain_manager.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class DrainManagerTest : public PartTest {
 protected:
  DrainManagerTest() : first_(add_node(4)), node_(add_node(4)) {}

  Answer drain(std::chrono::milliseconds time, bool if_idle = false) {
    return ask(drains_, control::DrainNode{node_, time, "preemption", if_idle}, first_);
  }
  /// Answers the questions for objects that the nodes could not take over.
  int take_over(std::int64_t failed) {
    int count = 0;
    for (auto sent = links_.take<control::TakeOver>(); sent;
         sent = links_.take<control::TakeOver>()) {
      sent->answer(ControlAnswer{failed});
      ++count;
    }
    return count;
  }
  void advance(std::chrono::milliseconds time) {
    time_ += time;
    drains_.tick(time_);
  }

  const NodeId first_, node_;
  NodeUse use_;
  int changes_ = 0;
  FakeActors actors_{context_};
  FakeGroups groups_{context_};
  PublishedObjects published_{context_};
  DrainManager drains_{context_,
                       actors_,
                       groups_,
                       published_,
                       {[this] { ++changes_; }, [this](NodeId) { return use_; }}};
};

TEST_F(DrainManagerTest, AnEmptyNodeLeavesOnceItsObjectsAreTakenOver) {
  EXPECT_TRUE(status(drain(20s)).ok());
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(groups_.left, std::vector{node_});
  EXPECT_EQ(links_.events.size(), 2u) << "both nodes get to know";
  EXPECT_EQ(take_over(1), 1);
  EXPECT_FALSE(links_.take<control::Leave>()) << "one object is left";
  advance(500ms);
  EXPECT_EQ(take_over(0), 1);
  EXPECT_TRUE(links_.take<control::Leave>());
  EXPECT_EQ(drains_.next_tick(), Deadline::max());
}

TEST_F(DrainManagerTest, WhatStaysIsLeftAtTheDeadline) {
  const JobId job = add_job(node_);
  drain(20s);
  EXPECT_EQ(take_over(0), 1);
  EXPECT_FALSE(links_.take<control::Leave>());
  advance(15s);
  EXPECT_EQ(take_over(0), 1) << "the last call";
  advance(5s);
  const auto leave = links_.take<control::Leave>();
  ASSERT_TRUE(leave);
  EXPECT_NE(std::get<control::Leave>(leave->request.body).reason.find("at its deadline"),
            std::string::npos);
  EXPECT_TRUE(tables_.jobs().runs(job));
}

TEST_F(DrainManagerTest, AnEarlierDeadlineCounts) {
  add_job(node_);
  drain(20s);
  drain(60s);
  EXPECT_EQ(drains_.nodes().deadline(node_), time_ + 20s);
  drain(10s);
  EXPECT_EQ(drains_.nodes().deadline(node_), time_ + 10s);
  EXPECT_EQ(drains_.begun(), 2u);
}

TEST_F(DrainManagerTest, ABusyNodeIsNotDrainedAsIdle) {
  use_.jobs = 1;
  EXPECT_EQ(status(drain(20s, true)).code(), ErrorCode::kResourceExhausted);
  use_.jobs = 0;
  EXPECT_TRUE(status(drain(20s, true)).ok());
}

TEST_F(DrainManagerTest, SaysHowANodeHasLeft) {
  EXPECT_EQ(drains_.node_lost(first_, "it is silent"),
            "node " + first_.short_hex() + " (10.0.0.1:1) is gone: it is silent");
  add_job(node_);
  drain(20s);
  EXPECT_EQ(drains_.node_lost(node_, "it is silent"),
            "node " + node_.short_hex() +
                " (10.0.0.2:1) was drained (preemption) and has left before its deadline: it is "
                "silent");
  EXPECT_EQ(drains_.nodes().size(), 0u);
}

TEST_F(DrainManagerTest, GoesOnAfterARestart) {
  add_job(node_);
  const auto deadline = std::chrono::milliseconds(unix_milliseconds()) + 1h;
  context_.commit(command::NodeDrains{node_, NodeDrain{"preemption", 20s, deadline, 0, ""}});
  drains_.restored();
  EXPECT_EQ(drains_.nodes().deadline(node_), time_ + 20s) << "no more than it was given";
  drains_.node_connected(node_);
  EXPECT_EQ(links_.events.size(), 1u);
  EXPECT_EQ(take_over(0), 1);
}

}  // namespace
}  // namespace runtime
