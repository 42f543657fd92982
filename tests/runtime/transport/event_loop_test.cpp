#include "runtime/transport/event_loop.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(EventLoop, RunsPostedWorkWithoutAnyWaiter) {
  EventLoop loop;
  std::promise<bool> ran;
  loop.post([&] { ran.set_value(loop.in_loop()); });
  EXPECT_TRUE(ran.get_future().get());
  EXPECT_FALSE(loop.in_loop());
}

TEST(EventLoop, LetsTheWaitingThreadDrive) {
  EventLoop loop;
  Event event(loop);
  std::thread::id driver;
  // The background thread may win the first round; a waiter that keeps coming back must get the
  // seat.
  for (int i = 0; i < 100 && driver != std::this_thread::get_id(); ++i) {
    event.reset();
    asio::steady_timer timer(loop.context(), milliseconds(5));
    timer.async_wait([&](auto) {
      driver = std::this_thread::get_id();
      event.set();
    });
    ASSERT_TRUE(loop.run_until(event, deadline_after(seconds(10))));
  }
  EXPECT_EQ(driver, std::this_thread::get_id());
}

TEST(EventLoop, ReturnsAtTheDeadline) {
  EventLoop loop;
  Event event(loop);
  auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(loop.run_until(event, deadline_after(milliseconds(30))));
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds(29));
  event.set();
  EXPECT_TRUE(loop.run_until(event, Deadline::min()));
}

TEST(EventLoop, IsWokenFromOtherThreads) {
  EventLoop loop;
  for (int i = 0; i < 200; ++i) {
    Event event(loop);
    support::BlockingThread waiting;
    std::thread setter([&] {
      if (i % 2) {
        EXPECT_TRUE(waiting.is_blocked());
      }
      event.set();
    });
    waiting.begin();
    EXPECT_TRUE(loop.run_until(event, deadline_after(seconds(30))));
    setter.join();
  }
}

TEST(EventLoop, ServesManyWaitersAtOnce) {
  EventLoop loop;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Event event(loop);
        loop.post([&event] { event.set(); });
        if (loop.run_until(event, deadline_after(seconds(20)))) ++good;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good.load(), 3000);
}

TEST(EventLoop, FollowersTimeOutWhileAnotherLeads) {
  EventLoop loop;
  Event last(loop);
  std::atomic<bool> leads{true};
  support::BlockingThread leading;
  std::thread leader([&] {
    leading.begin();
    EXPECT_TRUE(loop.run_until(last, deadline_after(seconds(60))));
    leads = false;
  });
  ASSERT_TRUE(leading.is_blocked());
  Event mine(loop);
  EXPECT_FALSE(loop.run_until(mine, deadline_after(milliseconds(50))));
  EXPECT_TRUE(leads);
  last.set();
  leader.join();
}

TEST(EventLoop, GoesOnBehindWaitersThatLeave) {
  // After the waiters have left, posted work and timers are served by the background thread again.
  EventLoop loop;
  Event event(loop);
  loop.post([&] { event.set(); });
  ASSERT_TRUE(loop.run_until(event, deadline_after(seconds(10))));
  std::promise<void> ticked;
  asio::steady_timer timer(loop.context(), milliseconds(5));
  timer.async_wait([&](auto) { ticked.set_value(); });
  EXPECT_EQ(ticked.get_future().wait_for(seconds(10)), std::future_status::ready);
}

TEST(EventLoop, StopEndsEveryWait) {
  EventLoop loop;
  std::vector<std::thread> threads;
  std::array<support::BlockingThread, 3> waiting;
  for (support::BlockingThread& each : waiting) {
    threads.emplace_back([&] {
      Event event(loop);
      each.begin();
      EXPECT_FALSE(loop.run_until(event, Deadline::max()));
    });
  }
  for (const support::BlockingThread& each : waiting) EXPECT_TRUE(each.is_blocked());
  loop.stop();
  for (auto& thread : threads) thread.join();
}

TEST(EventLoop, SurvivesAHandlerThatThrows) {
  EventLoop loop;
  std::promise<void> ran;
  loop.post([] { throw std::runtime_error("a bug"); });
  loop.post([&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(seconds(10)), std::future_status::ready);
}

TEST(EventLoopDeath, WaitingInsideAHandlerIsABug) {
  EXPECT_DEATH(
      {
        EventLoop loop;
        Event event(loop);
        Event done(loop);
        loop.post([&] { loop.run_until(event, Deadline::max()); });
        loop.run_until(done, deadline_after(seconds(5)));
      },
      "in_loop");
}

}  // namespace
}  // namespace runtime
