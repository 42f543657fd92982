#include "runtime/call/placement_group.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/runtime/call/fake_objects.h"
#include "tests/support/expect_failure.h"
#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

/// Notes how long each wait may take; what happens during one is the test's.
class NotedWaits final : public support::TurnedClock {
 public:
  bool wait(EventLoop&, const Event& event, Time deadline) override {
    limits.push_back(deadline == Time::max() ? 0s : deadline - now());
    if (during) during();
    return event.is_set();
  }

  std::vector<Duration> limits;  // 0: none
  std::function<void()> during;
};

class PendingGroupTest : public ::testing::Test {
 protected:
  PendingGroup pending() {
    return {group_, placed_, state_, [this] { ++explanations_; }};
  }
  void place() {
    state_->placed = true;
    placed_->fulfil(test::small_value(0));
  }

  NotedWaits waits_;
  EventLoop loop_;
  test::FakeObjectContext objects_{loop_};
  const GroupId group_{};
  const ObjectStatePtr placed_ = std::make_shared<ObjectState>(objects_.get());
  const std::shared_ptr<GroupState> state_ = std::make_shared<GroupState>();
  int explanations_ = 0;
};

TEST_F(PendingGroupTest, OneThatHasItsPlaceInTimeNeedsNoExplanation) {
  waits_.during = [this] { place(); };
  const PendingGroup group = pending();
  EXPECT_FALSE(group.is_ready());
  const Result<GroupState> state = group.get();
  ASSERT_TRUE(state.ok()) << state.status().to_string();
  EXPECT_TRUE(state->placed) << "the state is read after the wait";
  EXPECT_TRUE(group.is_ready());
  EXPECT_EQ(waits_.limits.size(), 1u);
  EXPECT_EQ(explanations_, 0);
}

TEST_F(PendingGroupTest, ALongWaitIsExplainedOnceAndGoesOn) {
  waits_.during = [this] {
    if (explanations_ > 0) placed_->fail(resource_exhausted("no node has GPU 8"));
  };
  support::expect_failure(pending().get().status(), ErrorCode::kResourceExhausted,
                          {"no node has GPU 8"});
  EXPECT_EQ(explanations_, 1);
  EXPECT_EQ(waits_.limits, (std::vector<NotedWaits::Duration>{2s, 0s}));
}

TEST_F(PendingGroupTest, AWaitThatTheRuntimesEndCutsShortIsCancelled) {
  support::expect_failure(pending().get().status(), ErrorCode::kCancelled, {"stopped"});
}

}  // namespace
}  // namespace runtime
