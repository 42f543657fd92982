#include "rl/checkpoint/idle_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace rl {
namespace {

int nice_value() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

TEST(RunWhenIdle, WorkGivesWayAndItsCallerDoesNot) {
  const int before = nice_value();
  EXPECT_EQ(run_when_idle([] { return nice_value(); }), std::max(before, 10));
  EXPECT_EQ(nice_value(), before);
}

TEST(RunWhenIdle, GivesWhatTheWorkReturnsOrThrows) {
  const auto value = run_when_idle([] { return std::make_unique<int>(3); });
  EXPECT_EQ(*value, 3);
  EXPECT_THROW(run_when_idle([]() -> int { throw std::runtime_error("no"); }), std::runtime_error);
}

}  // namespace
}  // namespace rl
