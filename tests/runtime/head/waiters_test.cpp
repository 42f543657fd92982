// Answers that wait for what they are about, or for their deadlines.
#include "runtime/head/waiters.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace runtime {
namespace {

using namespace std::chrono_literals;

class WaitersTest : public ::testing::Test {
 protected:
  using Expired = std::vector<std::pair<std::string, int>>;

  const Deadline start_ = Deadline() + 1h;
  Waiters<std::string, int> waiters_;
};

TEST_F(WaitersTest, TakesAllThatWaitForAKeyInTheirOrder) {
  waiters_.add("a", start_, 1);
  waiters_.add("b", start_, 2);
  waiters_.add("a", start_, 3);
  EXPECT_EQ(waiters_.take("a"), (std::vector{1, 3}));
  EXPECT_TRUE(waiters_.take("a").empty());
  EXPECT_FALSE(waiters_.empty());
  EXPECT_EQ(waiters_.take("b"), std::vector{2});
  EXPECT_TRUE(waiters_.empty());
}

TEST_F(WaitersTest, ThoseWhoseDeadlineHasPassedExpire) {
  EXPECT_EQ(waiters_.earliest(), Deadline::max());
  waiters_.add("a", start_ + 2s, 1);
  waiters_.add("a", start_ + 1s, 2);
  waiters_.add("b", start_ + 3s, 3);
  EXPECT_EQ(waiters_.earliest(), start_ + 1s);
  EXPECT_EQ(waiters_.expire(start_ + 1s - 1ns), Expired());
  EXPECT_EQ(waiters_.expire(start_ + 1s), (Expired{{"a", 2}}));
  EXPECT_EQ(waiters_.earliest(), start_ + 2s);
  EXPECT_EQ(waiters_.take("a"), std::vector{1}) << "one of a key expires without the others";
  EXPECT_EQ(waiters_.expire(start_ + 1h), (Expired{{"b", 3}}));
  EXPECT_TRUE(waiters_.empty());
  EXPECT_EQ(waiters_.earliest(), Deadline::max());
}

TEST_F(WaitersTest, WhatWasTakenDoesNotExpireAndHidesNoOther) {
  waiters_.add("a", start_ + 1s, 1);
  waiters_.add("b", start_ + 2s, 2);
  EXPECT_EQ(waiters_.take("a"), std::vector{1});
  EXPECT_LE(waiters_.earliest(), start_ + 2s) << "a look too many is allowed, one too late is not";
  EXPECT_EQ(waiters_.expire(start_ + 1s), Expired());
  EXPECT_EQ(waiters_.earliest(), start_ + 2s);
  waiters_.add("c", start_ + 1s, 3);
  EXPECT_EQ(waiters_.earliest(), start_ + 1s);
  EXPECT_EQ(waiters_.expire(start_ + 2s), (Expired{{"b", 2}, {"c", 3}}));
}

TEST_F(WaitersTest, AnswersNeedNoCopy) {
  Waiters<int, std::unique_ptr<int>> owned;
  owned.add(7, start_, std::make_unique<int>(1));
  owned.add(7, start_ + 1s, std::make_unique<int>(2));
  auto expired = owned.expire(start_);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(*expired[0].second, 1);
  EXPECT_EQ(*owned.take(7).at(0), 2);
}

}  // namespace
}  // namespace runtime
