#include "runtime/worker/actor_executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "runtime/core/clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

/// Runs a function as its turns.
class Line final : public Runnable {
 public:
  explicit Line(std::function<bool(std::size_t)> turn) : turn_(std::move(turn)) {}
  bool run(std::size_t jobs_max) override { return turn_(jobs_max); }

 private:
  const std::function<bool(std::size_t)> turn_;
};

std::shared_ptr<Line> line(std::function<bool(std::size_t)> turn) {
  return std::make_shared<Line>(std::move(turn));
}

class ActorExecutorTest : public ::testing::Test {
 protected:
  /// Serves on this thread until a line stops it.
  void serve() { executor_.run(); }

  EventLoop loop_;
  ActorExecutor executor_{loop_, {.threads_max = 4, .calls_per_turn = 7}};
};

TEST_F(ActorExecutorTest, ALineHasTurnsUntilItWantsNoMore) {
  int turns = 0;
  executor_.post(line([&](std::size_t jobs_max) {
    EXPECT_EQ(jobs_max, 7u);
    if (++turns < 3) return true;
    executor_.stop();
    return false;
  }));
  serve();
  EXPECT_EQ(turns, 3);
}

TEST_F(ActorExecutorTest, LinesTakeTurns) {
  std::string order;
  const auto taker = [&](char name) {
    return line([&order, name, left = std::make_shared<int>(3)](std::size_t) {
      order += name;
      return --*left > 0;
    });
  };
  executor_.post(taker('a'));
  executor_.post(taker('b'));
  executor_.post(line([&](std::size_t) {
    order += '.';
    if (order.size() < 9) return true;
    executor_.stop();
    return false;
  }));
  serve();
  EXPECT_EQ(order, "ab.ab.ab.");
}

TEST_F(ActorExecutorTest, OneThreadRunsAllUnlessMoreAreWanted) {
  std::set<std::thread::id> threads;
  for (int i = 0; i < 50; ++i) {
    executor_.post(line([&, i](std::size_t) {
      threads.insert(std::this_thread::get_id());
      if (i == 49) executor_.stop();
      return false;
    }));
  }
  serve();
  EXPECT_EQ(threads.size(), 1u);
}

TEST_F(ActorExecutorTest, AThreadThatWaitsLeavesItsPlaceToAnother) {
  Event arrived(loop_);
  std::thread::id waiter;
  std::thread::id other;
  executor_.post(line([&](std::size_t) {
    waiter = std::this_thread::get_id();
    EXPECT_TRUE(executor_.block_until(loop_, arrived, deadline_after(20s)));
    executor_.stop();
    return false;
  }));
  executor_.post(line([&](std::size_t) {
    other = std::this_thread::get_id();
    arrived.set();
    return false;
  }));
  serve();
  EXPECT_NE(other, std::thread::id());
  EXPECT_NE(other, waiter);
}

TEST_F(ActorExecutorTest, TheEndWaitsForTurnsOfOtherThreads) {
  executor_.want_threads(2);
  std::atomic<bool> stopped = false;
  std::atomic<bool> over = false;
  executor_.post(line([&](std::size_t) {
    stopped.wait(false);
    over = true;
    return false;
  }));
  executor_.post(line([&](std::size_t) {
    executor_.stop();
    stopped = true;
    stopped.notify_all();
    return false;
  }));
  serve();
  EXPECT_TRUE(over);
}

TEST_F(ActorExecutorTest, WhatIsInLineAtTheEndIsDropped) {
  auto never = line([](std::size_t) {
    ADD_FAILURE() << "ran after the end";
    return false;
  });
  const std::weak_ptr<Line> watched = never;
  executor_.post(line([&](std::size_t) {
    executor_.post(std::exchange(never, nullptr));
    executor_.stop();
    return false;
  }));
  serve();
  EXPECT_TRUE(watched.expired());
}

TEST_F(ActorExecutorTest, OneWaitThatIsLongIsTold) {
  int told = 0;
  executor_.set_on_long_wait([&] { ++told; });
  Event never(loop_);
  executor_.post(line([&](std::size_t) {
    EXPECT_FALSE(executor_.block_until(
        loop_, never, deadline_after(ActorExecutor::kLongWait + std::chrono::milliseconds(50))));
    executor_.stop();
    return false;
  }));
  serve();
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace runtime
