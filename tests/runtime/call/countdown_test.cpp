#include "runtime/call/countdown.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace runtime {
namespace {

/// Three objects that it waits for.
class CountdownTest : public ::testing::Test {
 protected:
  ~CountdownTest() override {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].sink) objects_[i]->remove_waiter(nodes_[i]);
  }
  Countdown& count(std::size_t objects, OnFailure on_failure = OnFailure::kCount) {
    countdown_ = std::make_unique<Countdown>(loop_, objects, on_failure);
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      objects_[i] = std::make_shared<ObjectState>(nullptr);
      nodes_[i].sink = countdown_.get();
      EXPECT_TRUE(objects_[i]->add_waiter(nodes_[i]));
    }
    return *countdown_;
  }

  EventLoop loop_;
  std::unique_ptr<Countdown> countdown_;
  std::array<ObjectStatePtr, 3> objects_;
  std::array<WaitNode, 3> nodes_;
};

TEST_F(CountdownTest, IsOverWhenThatManyHaveSettled) {
  Countdown& countdown = count(2);
  objects_[1]->fulfil({});
  EXPECT_FALSE(countdown.event().is_set());
  objects_[0]->fulfil({});
  EXPECT_TRUE(countdown.event().is_set());
  objects_[2]->fulfil({});
  EXPECT_TRUE(countdown.event().is_set());
}

TEST_F(CountdownTest, OfNoneIsOver) { EXPECT_TRUE(Countdown(loop_, 0).event().is_set()); }

TEST_F(CountdownTest, AFailureIsCounted) {
  Countdown& countdown = count(2);
  objects_[0]->fail(task_failed("no"));
  EXPECT_FALSE(countdown.event().is_set());
  objects_[1]->fail(task_failed("no"));
  EXPECT_TRUE(countdown.event().is_set());
}

TEST_F(CountdownTest, OrEndsTheWait) {
  Countdown& countdown = count(3, OnFailure::kReturn);
  objects_[0]->fulfil({});
  EXPECT_FALSE(countdown.event().is_set());
  objects_[1]->fail(task_failed("no"));
  EXPECT_TRUE(countdown.event().is_set());
}

}  // namespace
}  // namespace runtime
