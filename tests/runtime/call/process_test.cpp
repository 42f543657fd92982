#include "runtime/call/process.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/runtime/call/fake_objects.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

/// A process that no node knows yet.
struct ProcessTest : ::testing::Test {
  std::shared_ptr<Process> process = Process::make(std::make_shared<Registry>());

  ObjectStatePtr pending() { return std::make_shared<ObjectState>(process->object_context()); }
};

TEST_F(ProcessTest, WaitsForSomeOfSeveralObjects) {
  std::vector<ObjectStatePtr> states{
      pending(), pending(), pending(),
      ObjectState::ready(process->object_context(), test::small_value(4))};
  process->wait(states, 1, Deadline::max());  // one is there
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    states[2]->fail(not_found("a failure settles too"));
    states[0]->fulfil(test::small_value(1));
  });
  waiting.begin();
  process->wait(states, 3, deadline_after(30s));
  other.join();
  EXPECT_TRUE(states[0]->is_settled() && states[2]->is_settled());
  EXPECT_FALSE(states[1]->is_settled());
  process->wait(states, 4, deadline_after(20ms));
  states[1]->fulfil(test::small_value(2));  // no thread waits any more
  process->wait(states, 99, Deadline::max());
}

TEST_F(ProcessTest, ItsEndEndsWaitingForItsObjects) {
  const ObjectStatePtr state = pending();
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    process->shut_down();
  });
  waiting.begin();
  EXPECT_EQ(state->open(Deadline::max()).status().code(), ErrorCode::kCancelled);
  other.join();
}

TEST_F(ProcessTest, ItsObjectsKeepIt) {
  const std::weak_ptr<Process> weak = process;
  const ObjectStatePtr state = pending();
  process.reset();
  ASSERT_FALSE(weak.expired());
  EXPECT_FALSE(state->wait(deadline_after(1ms)));
}

}  // namespace
}  // namespace runtime
