#include "runtime/call/object_state.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "runtime/call/countdown.h"
#include "runtime/call/object_ref.h"
#include "runtime/call/process.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

struct ObjectStateTest : ::testing::Test {
  std::shared_ptr<Process> process = Process::make(std::make_shared<Registry>());

  ObjectStatePtr pending() { return std::make_shared<ObjectState>(process); }
  static ObjectValue value_of(int number) {
    Encoder encoder;
    encode_value(encoder, number);
    ObjectValue value;
    value.bytes = encoder.to_buffer();
    return value;
  }
};

TEST_F(ObjectStateTest, WaitEndsWhenItIsFulfilled) {
  auto state = pending();
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    state->fulfil(value_of(7));
  });
  waiting.begin();
  EXPECT_TRUE(state->wait(deadline_after(30s)));
  other.join();
  Result<int> value = fetch<int>(*state, deadline_after(0s));
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 7);
}

TEST_F(ObjectStateTest, WaitEndsAtTheDeadline) {
  auto state = pending();
  EXPECT_FALSE(state->wait(deadline_after(20ms)));
  EXPECT_EQ(state->open(deadline_after(20ms)).status().code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(ObjectStateTest, IsSettledOnce) {
  auto state = pending();
  state->fail(not_found("first"));
  state->fulfil(value_of(1));
  state->fail(cancelled("third"));
  EXPECT_EQ(state->failure(), not_found("first"));
}

TEST_F(ObjectStateTest, ActionsRunOnceWhetherBeforeOrAfter) {
  auto state = pending();
  int ran = 0;
  state->then([&] { ++ran; });
  EXPECT_EQ(ran, 0);
  state->fulfil(value_of(1));
  EXPECT_EQ(ran, 1);
  state->then([&] { ++ran; });
  EXPECT_EQ(ran, 2);
}

TEST_F(ObjectStateTest, AnActionMayUseTheState) {
  auto state = pending();
  state->then([&] { EXPECT_TRUE(state->wait(Deadline::max())); });
  state->fulfil(value_of(1));
}

TEST_F(ObjectStateTest, WaitsForSomeOfSeveral) {
  std::vector<ObjectStatePtr> states{pending(), pending(), pending(),
                                     ObjectState::ready(process, value_of(4))};
  process->wait(states, 1, Deadline::max());  // one is there
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    states[2]->fail(not_found("a failure settles too"));
    states[0]->fulfil(value_of(1));
  });
  waiting.begin();
  process->wait(states, 3, deadline_after(30s));
  other.join();
  EXPECT_TRUE(states[0]->is_settled() && states[2]->is_settled());
  EXPECT_FALSE(states[1]->is_settled());
  process->wait(states, 4, deadline_after(20ms));
  states[1]->fulfil(value_of(2));  // no thread waits any more
  process->wait(states, 99, Deadline::max());
}

TEST_F(ObjectStateTest, ManyThreadsWaitForOne) {
  auto state = pending();
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  std::array<support::BlockingThread, 8> waiting;
  for (support::BlockingThread& each : waiting) {
    threads.emplace_back([&] {
      each.begin();
      if (state->wait(deadline_after(30s))) ++woken;
    });
  }
  for (const support::BlockingThread& each : waiting) EXPECT_TRUE(each.is_blocked());
  state->fulfil(value_of(1));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken, 8);
}

TEST_F(ObjectStateTest, ShutDownEndsWaiting) {
  auto state = pending();
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    process->shut_down();
  });
  waiting.begin();
  EXPECT_EQ(state->open(Deadline::max()).status().code(), ErrorCode::kCancelled);
  other.join();
}

TEST_F(ObjectStateTest, LeaseGoesWithTheState) {
  auto lease = std::make_shared<int>(1);
  ObjectValue value = value_of(1);
  value.lease = lease;
  auto state = ObjectState::ready(process, std::move(value));
  EXPECT_EQ(lease.use_count(), 2);
  state.reset();
  EXPECT_EQ(lease.use_count(), 1);
}

}  // namespace
}  // namespace runtime
