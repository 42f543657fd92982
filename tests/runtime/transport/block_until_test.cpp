// Waiting on a thread that serves something.
#include "runtime/transport/block_until.h"

#include <gtest/gtest.h>

#include <thread>

namespace runtime {
namespace {

using namespace std::chrono_literals;

class BlockUntilTest : public ::testing::Test {
 protected:
  /// Notes who waits, and does not.
  class FakeServer final : public ThreadServer {
   public:
    bool block_until(EventLoop&, Event& event, Deadline deadline) override {
      ++waits;
      last_event = &event;
      last_deadline = deadline;
      return answer;
    }

    int waits = 0;
    bool answer = true;
    Event* last_event = nullptr;
    Deadline last_deadline;
  };
  ~BlockUntilTest() override { ThreadServer::exchange_current(nullptr); }

  bool wait(Deadline deadline = Deadline::max()) {
    return runtime::block_until(loop_, event_, deadline);
  }

  EventLoop loop_;
  Event event_{loop_};
  FakeServer server_;
};

TEST_F(BlockUntilTest, AThreadsServerWaitsForIt) {
  EXPECT_EQ(ThreadServer::exchange_current(&server_), nullptr);
  const Deadline deadline = deadline_after(1h);
  EXPECT_TRUE(wait(deadline));
  EXPECT_EQ(server_.waits, 1);
  EXPECT_EQ(server_.last_event, &event_);
  EXPECT_EQ(server_.last_deadline, deadline);
  server_.answer = false;
  EXPECT_FALSE(wait()) << "as the server says";
}

TEST_F(BlockUntilTest, WhatHasHappenedIsNotWaitedFor) {
  ThreadServer::exchange_current(&server_);
  event_.set();
  EXPECT_TRUE(wait());
  EXPECT_TRUE(wait(Deadline::min()));
  EXPECT_EQ(server_.waits, 0);
}

TEST_F(BlockUntilTest, AThreadWithoutAServerWaitsItself) {
  EXPECT_FALSE(wait(Deadline::min()));
  loop_.post([&] { event_.set(); });
  EXPECT_TRUE(wait());
}

TEST_F(BlockUntilTest, AServerIsThatOfItsThread) {
  ThreadServer::exchange_current(&server_);
  std::thread other([&] {
    EXPECT_EQ(ThreadServer::exchange_current(nullptr), nullptr);
    EXPECT_FALSE(wait(Deadline::min()));
  });
  other.join();
  EXPECT_EQ(server_.waits, 0);
  FakeServer inner;
  EXPECT_EQ(ThreadServer::exchange_current(&inner), &server_);
  wait();
  EXPECT_EQ(inner.waits, 1);
  EXPECT_EQ(ThreadServer::exchange_current(&server_), &inner);
}

}  // namespace
}  // namespace runtime
