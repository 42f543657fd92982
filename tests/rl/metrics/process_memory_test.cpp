#include "rl/metrics/process_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace rl {
namespace {

double machine_memory_gb() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1024.0 * 1024.0 * 1024.0);
}

// Memory that is written to is this process's, and that of no other.
TEST(ProcessMemory, WhatIsHeldIsInThePeakAndInTheMachinesUse) {
  constexpr std::size_t kHeld = 96 << 20;
  // Static, or the compiler may leave memory out that nothing reads.
  static const std::vector<char> held(kHeld, 'x');
  const double held_gb = static_cast<double>(kHeld) / (1024.0 * 1024.0 * 1024.0);
  EXPECT_GE(peak_memory_gb(), held_gb);
  EXPECT_LT(peak_memory_gb(), machine_memory_gb());
  EXPECT_GE(machine_memory_used_gb(), held_gb);
  EXPECT_LE(machine_memory_used_gb(), machine_memory_gb());
}

TEST(ProcessMemory, IsAddedToMetricsAndFailuresStayAsTheyAre) {
  const auto metrics = with_peak_memory(Metrics{{"loss", 2.0}});
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->at("loss"), 2.0);
  EXPECT_GT(metrics->at("perf/max_memory_allocated_gb"), 0.0);
  const runtime::Status failure = runtime::task_failed("out of memory");
  EXPECT_EQ(with_peak_memory(failure).status(), failure);
}

}  // namespace
}  // namespace rl
