#include "runtime/core/status.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "runtime/core/asio.h"
#include "runtime/core/clock.h"
#include "runtime/core/result.h"

namespace runtime {
namespace {

TEST(Clock, DeadlinesSaturateWhateverTheyAreCountedIn) {
  const auto now = steady_now();
  EXPECT_EQ(deadline_after(std::chrono::hours::max()), Deadline::max());
  EXPECT_EQ(deadline_after(std::chrono::seconds::max()), Deadline::max());
  EXPECT_EQ(deadline_after(std::chrono::milliseconds::max()), Deadline::max());
  EXPECT_EQ(deadline_after(std::chrono::nanoseconds::max()), Deadline::max());
  EXPECT_EQ(deadline_after(std::chrono::duration<double>(1e30)), Deadline::max());
  EXPECT_EQ(deadline_after(std::chrono::hours::min()), Deadline::min());
  const auto soon = deadline_after(std::chrono::duration<double>(1.5)) - now;
  EXPECT_GE(soon, std::chrono::milliseconds(1500));
  EXPECT_LT(soon, std::chrono::hours(1));
}

TEST(Status, IsOkByDefault) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.to_string(), "ok");
  EXPECT_EQ(status.with_context("loading"), status);
}

TEST(Status, TellsWhereItHappened) {
  Status status = not_found("no such file").with_context("loading model").with_context("step 3");
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_EQ(status.to_string(), "not found: step 3: loading model: no such file");
}

TEST(Status, HasItsNumbersForAllTime) {
  // They travel on the wire.
  EXPECT_EQ(static_cast<int>(ErrorCode::kInvalidArgument), 1);
  EXPECT_EQ(static_cast<int>(ErrorCode::kNotFound), 2);
  EXPECT_EQ(static_cast<int>(ErrorCode::kUnimplemented), 3);
  EXPECT_EQ(static_cast<int>(ErrorCode::kUnavailable), 4);
  EXPECT_EQ(static_cast<int>(ErrorCode::kDeadlineExceeded), 5);
  EXPECT_EQ(static_cast<int>(ErrorCode::kResourceExhausted), 6);
  EXPECT_EQ(static_cast<int>(ErrorCode::kCancelled), 7);
  EXPECT_EQ(static_cast<int>(ErrorCode::kActorDied), 8);
  EXPECT_EQ(static_cast<int>(ErrorCode::kObjectLost), 9);
  EXPECT_EQ(static_cast<int>(ErrorCode::kTaskFailed), 10);
  EXPECT_EQ(static_cast<int>(ErrorCode::kInternal), 11);
  EXPECT_EQ(error_code_from_wire(4), ErrorCode::kUnavailable);
  EXPECT_EQ(error_code_from_wire(12), ErrorCode::kInternal);
  EXPECT_EQ(error_code_from_wire(65535), ErrorCode::kInternal);
}

TEST(Status, TranslatesErrno) {
  EXPECT_EQ(errno_status(ENOENT, "model.json").to_string(),
            "not found: model.json: No such file or directory");
  EXPECT_EQ(errno_status(ENOSPC, "x").code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(errno_status(ECONNREFUSED, "x").code(), ErrorCode::kUnavailable);
  EXPECT_EQ(errno_status(ETIMEDOUT, "x").code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(errno_status(EACCES, "x").code(), ErrorCode::kInvalidArgument);
}

TEST(Status, TranslatesAsioErrors) {
  EXPECT_TRUE(from_asio({}, "x").ok());
  EXPECT_EQ(from_asio(asio::error::operation_aborted, "x").code(), ErrorCode::kCancelled);
  EXPECT_EQ(from_asio(asio::error::eof, "x").to_string(),
            "unavailable: x: peer closed the connection");
  EXPECT_EQ(from_asio(asio::error::connection_reset, "x").code(), ErrorCode::kUnavailable);
}

TEST(Result, HoldsAValueOrAStatus) {
  Result<std::string> good = std::string("yes");
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good.status().ok());
  EXPECT_EQ(*good, "yes");
  EXPECT_EQ(good->size(), 3u);
  Result<std::string> bad = not_found("no");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "no");
  EXPECT_EQ(bad.value_or("else"), "else");
  EXPECT_EQ(good.value_or("else"), "yes");
  std::string moved = std::move(good).value();
  EXPECT_EQ(moved, "yes");
}

TEST(ResultDeath, ReadingAFailureIsABugThatNamesTheStatus) {
  Result<int> bad = not_found("the file of keys");
  EXPECT_DEATH((void)*bad, "the file of keys");
  const Result<int> neither{Status()};
  EXPECT_FALSE(neither.ok());
  EXPECT_EQ(neither.status().code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace runtime
