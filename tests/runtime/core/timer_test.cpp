// A timer is the same on the machine's clock and on one that a simulation turns.
#include "runtime/core/timer.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/on_loop.h"
#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using Error = boost::system::error_code;

class TurnedTimerTest : public ::testing::Test {
 protected:
  /// Notes how a wait ended: 0 by itself.
  auto note() {
    return [this](Error error) { ended_.push_back(error.value()); };
  }
  static constexpr int kAborted = asio::error::operation_aborted;

  support::TurnedClock clock_;
  EventLoop loop_;
  std::vector<int> ended_;
};

TEST_F(TurnedTimerTest, RingsAtItsTime) {
  Timer timer(loop_.context(), 10ms);
  EXPECT_EQ(timer.expiry(), clock_.now() + 10ms);
  timer.async_wait(note());
  clock_.turn(9ms);
  EXPECT_TRUE(ended_.empty());
  clock_.turn(1ms);
  EXPECT_EQ(ended_, std::vector<int>{0});
  clock_.turn(1h);
  EXPECT_EQ(ended_.size(), 1u);
}

TEST_F(TurnedTimerTest, OneWhoseTimeIsOverRingsLaterNotAtOnce) {
  Timer timer(loop_.context(), clock_.now() - 1s);
  timer.async_wait(note());
  EXPECT_TRUE(ended_.empty());
  clock_.settle();
  EXPECT_EQ(ended_, std::vector<int>{0});
}

TEST_F(TurnedTimerTest, AnotherTimeEndsTheWait) {
  Timer timer(loop_.context(), 10ms);
  timer.async_wait(note());
  timer.expires_after(20ms);
  clock_.settle();
  EXPECT_EQ(ended_, std::vector<int>{kAborted});
  timer.async_wait(note());
  clock_.turn(10ms);
  EXPECT_EQ(ended_.size(), 1u) << "the first time is of no meaning any more";
  clock_.turn(10ms);
  EXPECT_EQ(ended_, (std::vector<int>{kAborted, 0}));
}

TEST_F(TurnedTimerTest, CancelEndsTheWaitAndTheNextOneCounts) {
  Timer timer(loop_.context(), 10ms);
  timer.async_wait(note());
  timer.cancel();
  timer.cancel();
  clock_.settle();
  EXPECT_EQ(ended_, std::vector<int>{kAborted});
  timer.async_wait(note());
  clock_.turn(10ms);
  EXPECT_EQ(ended_, (std::vector<int>{kAborted, 0}));
}

TEST_F(TurnedTimerTest, OneThatGoesEndsItsWait) {
  auto timer = std::make_unique<Timer>(loop_.context(), 10ms);
  timer->async_wait(note());
  timer.reset();
  clock_.turn(1h);
  EXPECT_EQ(ended_, std::vector<int>{kAborted});
}

TEST_F(TurnedTimerTest, MayGoInItsHandler) {
  auto timer = std::make_unique<Timer>(loop_.context(), 10ms);
  timer->async_wait([&](Error error) {
    ended_.push_back(error.value());
    timer.reset();
  });
  clock_.turn(1h);
  EXPECT_EQ(ended_, std::vector<int>{0});
  EXPECT_EQ(timer, nullptr);
}

TEST_F(TurnedTimerTest, SetAgainInItsHandlerItRingsAgain) {
  Timer timer(loop_.context(), 10ms);
  const std::function<void(Error)> again = [&](Error error) {
    ended_.push_back(error.value());
    if (ended_.size() == 3) return;
    timer.expires_after(10ms);
    timer.async_wait([&](Error next) { again(next); });
  };
  timer.async_wait([&](Error error) { again(error); });
  clock_.turn(20ms);
  EXPECT_EQ(ended_.size(), 2u);
  clock_.turn(10ms);
  EXPECT_EQ(ended_, (std::vector<int>{0, 0, 0}));
}

TEST_F(TurnedTimerTest, TimersRingInTheOrderOfTheirTimes) {
  Timer late(loop_.context(), 2ms), early(loop_.context(), 1ms);
  late.async_wait([this](Error) { ended_.push_back(2); });
  early.async_wait([this](Error) { ended_.push_back(1); });
  clock_.turn(5ms);
  EXPECT_EQ(ended_, (std::vector<int>{1, 2}));
}

TEST(Timer, RingsOnTheMachinesClock) {
  EventLoop loop;
  std::optional<Deadline> rang;
  const Deadline at = deadline_after(2ms);
  std::unique_ptr<Timer> timer;
  run_on(loop, [&] {
    timer = std::make_unique<Timer>(loop.context(), at);
    timer->async_wait([&](Error error) {
      EXPECT_FALSE(error);
      rang = steady_now();
    });
  });
  EXPECT_TRUE(comes_true(loop, [&] { return rang.has_value(); }));
  EXPECT_GE(*rang, at);
  run_on(loop, [&] { timer.reset(); });
}

TEST(Timer, IsCancelledOnTheMachinesClock) {
  EventLoop loop;
  std::vector<int> ended;
  std::unique_ptr<Timer> timer;
  run_on(loop, [&] {
    timer = std::make_unique<Timer>(loop.context(), 1h);
    timer->async_wait([&](Error error) { ended.push_back(error.value()); });
    timer->expires_after(2h);
    timer->async_wait([&](Error error) { ended.push_back(error.value()); });
    timer.reset();
  });
  EXPECT_TRUE(comes_true(loop, [&] { return ended.size() == 2; }));
  EXPECT_EQ(ended,
            (std::vector<int>{asio::error::operation_aborted, asio::error::operation_aborted}));
}

}  // namespace
}  // namespace runtime
