// Three days of a cluster, in a few minutes.
#include <gtest/gtest.h>

#include "tests/sim/days.h"

namespace sim {
namespace {

TEST(Days, NothingGathersInThreeDays) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Outcome outcome = run_hours(seed, 72);
    EXPECT_EQ(outcome.failure, "") << "again: test_sim --seed " << seed << " --hours 72 --trace";
    EXPECT_GE(outcome.seconds, 72 * 3600);
  }
}

}  // namespace
}  // namespace sim
