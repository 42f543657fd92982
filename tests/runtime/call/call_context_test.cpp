#include "runtime/call/call_context.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

TEST(CallContext, WithoutACallerThereIsNoEnd) {
  const CallContext call;
  EXPECT_FALSE(call.cancelled());
  EXPECT_TRUE(call.status().ok());
  EXPECT_EQ(call.remaining(), std::chrono::steady_clock::duration::max());
  EXPECT_TRUE(call.sleep_for(1ms));
}

TEST(CallContext, CopiesSeeTheCancellation) {
  std::stop_source source;
  const CallContext call(source.get_token(), Deadline::max());
  const CallContext copied_call = call;
  EXPECT_TRUE(copied_call.status().ok());
  source.request_stop();
  EXPECT_TRUE(copied_call.cancelled());
  EXPECT_EQ(copied_call.status().code(), ErrorCode::kCancelled);
  EXPECT_FALSE(copied_call.sleep_for(24h)) << "at once";
}

TEST(CallContext, CancellingEndsASleep) {
  std::stop_source source;
  const CallContext call(source.get_token(), Deadline::max());
  support::BlockingThread sleeping;
  std::thread other([&] {
    EXPECT_TRUE(sleeping.is_blocked());
    source.request_stop();
  });
  sleeping.begin();
  EXPECT_FALSE(call.sleep_for(24h));
  other.join();
}

TEST(CallContext, NoTimeIsLeftAfterTheDeadline) {
  EXPECT_EQ(CallContext({}, steady_now() - 1s).remaining(), 0s);
  const auto left = CallContext({}, steady_now() + 1h).remaining();
  EXPECT_GT(left, 0s);
  EXPECT_LE(left, 1h);
}

}  // namespace
}  // namespace runtime
