// A thousand seeds in every run of the tests, and that a seed is the same each time. Others:
// `test_sim --first N --count M`.
#include <gtest/gtest.h>

#include <cstdlib>

#include "scenario.h"

namespace sim {
namespace {

constexpr std::uint64_t kSeeds = 1000;
constexpr std::uint64_t kShards = 20;

class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, KeepWhatIsPromised) {
  const std::uint64_t each = kSeeds / kShards;
  for (std::uint64_t seed = GetParam() * each + 1; seed <= (GetParam() + 1) * each; ++seed) {
    const Outcome outcome = run_seed(seed);
    EXPECT_EQ(outcome.failure, "") << "again: test_sim --seed " << seed << " --trace";
    EXPECT_GT(outcome.steps, 50u);  // even where the head dies as soon as it is up
  }
}

INSTANTIATE_TEST_SUITE_P(Thousand, Seeds, ::testing::Range<std::uint64_t>(0, kShards));

TEST(Replay, GivesTheSameForTheSameSeed) {
  for (std::uint64_t seed : {3, 17, 40, 111, 512}) {
    const Outcome once = run_seed(seed);
    const Outcome again = run_seed(seed);
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.steps, again.steps) << "seed " << seed;
    EXPECT_EQ(once.failure, again.failure) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sim
