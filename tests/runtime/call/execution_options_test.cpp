#include "runtime/call/execution_options.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <future>
#include <string>
#include <thread>

#include "tests/support/expect_failure.h"
#include "tests/support/in_child.h"

namespace runtime {
namespace {

using support::expect_failure;

TEST(ExecutionOptions, EveryGroupAllowsCallsAndHasAName) {
  EXPECT_TRUE(ExecutionOptions{}.check().ok());
  EXPECT_TRUE((ExecutionOptions{2, {{"io", 1}}, {0}}.check().ok()));
  expect_failure(ExecutionOptions{0}.check(), ErrorCode::kInvalidArgument, {"max_concurrency"});
  expect_failure(ExecutionOptions{1, {{"io", 0}}}.check(), ErrorCode::kInvalidArgument, {"\"io\""});
  expect_failure(ExecutionOptions{1, {{"", 1}}}.check(), ErrorCode::kInvalidArgument, {"name"});
}

TEST(ExecutionOptions, CallsAtOnceAreLimitedInAll) {
  const ExecutionOptions most{kConcurrencyMax - 1, {{"io", 1}}};
  EXPECT_TRUE(most.check().ok());
  const ExecutionOptions more{kConcurrencyMax - 1, {{"io", 2}}};
  expect_failure(more.check(), ErrorCode::kInvalidArgument, {"1001", "1000"});
  // The sum may be more than fits its summands' type.
  const ExecutionOptions huge{1, {{"a", UINT32_MAX}, {"b", 1}}};
  EXPECT_EQ(huge.check().code(), ErrorCode::kInvalidArgument);
  ExecutionOptions groups;
  for (std::size_t i = 0; i < kConcurrencyGroupsMax; ++i)
    groups.concurrency_groups["group" + std::to_string(i)] = 1;
  EXPECT_TRUE(groups.check().ok());
  groups.concurrency_groups["more"] = 1;
  expect_failure(groups.check(), ErrorCode::kInvalidArgument, {"65", "64"});
}

TEST(ExecutionOptions, NoCoreIsBeyondWhatAMaskHas) {
  EXPECT_TRUE((ExecutionOptions{1, {}, {CPU_SETSIZE - 1}}.check().ok()));
  expect_failure(ExecutionOptions{1, {}, {0, CPU_SETSIZE}}.check(), ErrorCode::kInvalidArgument,
                 {std::to_string(CPU_SETSIZE)});
}

TEST(PinProcess, ACoreThatTheMachineLacksIsRefused) {
  const long cores = ::sysconf(_SC_NPROCESSORS_CONF);
  expect_failure(pin_process({0, static_cast<std::uint32_t>(cores)}), ErrorCode::kInvalidArgument,
                 {"no core " + std::to_string(cores)});
}

TEST(PinProcess, PinsThreadsThatRunAlready) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::uint32_t core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  EXPECT_EQ(support::in_child([core] {
              std::promise<void> pinned;
              int result = 1;
              std::promise<void> runs;
              std::thread other([&] {
                runs.set_value();
                pinned.get_future().wait();
                cpu_set_t own;
                if (::sched_getaffinity(0, sizeof own, &own) != 0) return;
                result = CPU_COUNT(&own) == 1 && CPU_ISSET(core, &own) ? 0 : 2;
              });
              runs.get_future().wait();
              const bool ok = pin_process({core}).ok();
              pinned.set_value();
              other.join();
              return ok ? result : 3;
            }),
            0);
}

}  // namespace
}  // namespace runtime
