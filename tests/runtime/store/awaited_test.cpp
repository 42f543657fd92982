#include "runtime/store/awaited.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using Answer = std::unique_ptr<int>;

TEST(Awaited, HasTheAnswerThatCameBefore) {
  EventLoop loop;
  Awaited<Answer> awaited(loop);
  Answer answer = std::make_unique<int>(3);
  EXPECT_TRUE(awaited.offer(answer));
  EXPECT_EQ(answer, nullptr) << "it was taken";
  const auto taken = awaited.wait(Deadline::min());
  ASSERT_TRUE(taken);
  EXPECT_EQ(**taken, 3);
}

TEST(Awaited, AnAnswerEndsTheWait) {
  EventLoop loop;
  Awaited<Answer> awaited(loop);
  support::BlockingThread waiting;
  std::optional<Answer> taken;
  std::thread thread([&] {
    waiting.begin();
    taken = awaited.wait(Deadline::max());
  });
  EXPECT_TRUE(waiting.is_blocked());
  Answer answer = std::make_unique<int>(4);
  EXPECT_TRUE(awaited.offer(answer));
  thread.join();
  ASSERT_TRUE(taken);
  EXPECT_EQ(**taken, 4);
}

TEST(Awaited, AnAnswerThatIsTooLateStaysWithItsCaller) {
  EventLoop loop;
  Awaited<Answer> awaited(loop);
  EXPECT_FALSE(awaited.wait(deadline_after(std::chrono::milliseconds(1))));
  Answer answer = std::make_unique<int>(5);
  EXPECT_FALSE(awaited.offer(answer));
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(*answer, 5);
}

TEST(Awaited, IsWokenWithoutAnAnswer) {
  EventLoop loop;
  Awaited<Answer> awaited(loop);
  support::BlockingThread waiting;
  std::thread thread([&] {
    waiting.begin();
    EXPECT_FALSE(awaited.wait(Deadline::max()));
  });
  EXPECT_TRUE(waiting.is_blocked());
  awaited.wake();
  thread.join();
  Answer answer = std::make_unique<int>(6);
  EXPECT_FALSE(awaited.offer(answer));
}

TEST(Awaited, AnAnswerThatCameBeforeItWasWokenCounts) {
  EventLoop loop;
  Awaited<Answer> awaited(loop);
  Answer answer = std::make_unique<int>(7);
  EXPECT_TRUE(awaited.offer(answer));
  awaited.wake();
  EXPECT_TRUE(awaited.wait(Deadline::max()));
}

}  // namespace
}  // namespace runtime
