// Callers that wait until little enough is queued.
#include "runtime/transport/drain_waiters.h"

#include <gtest/gtest.h>

#include <string>

namespace runtime {
namespace {

class DrainWaitersTest : public ::testing::Test {
 protected:
  void add(std::size_t bytes, const std::string& name) {
    waiters_.add(bytes, [this, name] { notified_ += name; });
  }
  /// The waiters that are notified at this many queued bytes.
  std::string notified_at(std::size_t queued) {
    notified_.clear();
    const bool are_due = waiters_.are_due(queued);
    auto due = waiters_.take_due(queued);
    EXPECT_EQ(are_due, !due.empty());
    for (DrainWaiters::Drained& drained : due) drained();
    return notified_;
  }

  DrainWaiters waiters_;
  std::string notified_;
};

TEST_F(DrainWaitersTest, EachIsDueAtItsOwnNumberOfBytes) {
  EXPECT_FALSE(waiters_.are_due(0));
  add(100, "a");
  add(0, "b");
  add(50, "c");
  EXPECT_EQ(notified_at(101), "");
  EXPECT_EQ(notified_at(100), "a");
  EXPECT_EQ(notified_at(51), "");
  EXPECT_EQ(notified_at(0), "bc") << "in the order in which they came";
  EXPECT_EQ(notified_at(0), "") << "once";
}

TEST_F(DrainWaitersTest, ANotifiedWaiterMayWaitAgain) {
  waiters_.add(10, [this] {
    notified_ += "first";
    add(10, "second");
  });
  auto due = waiters_.take_due(10);
  ASSERT_EQ(due.size(), 1u);
  due[0]();
  EXPECT_EQ(notified_, "first");
  EXPECT_EQ(notified_at(10), "second");
}

}  // namespace
}  // namespace runtime
