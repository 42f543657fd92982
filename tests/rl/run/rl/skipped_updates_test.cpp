// Updates without a finite gradient: which of them end a run.
#include "rl/run/rl/skipped_updates.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

constexpr std::int64_t kDivergedAfter = DivergenceDetector::kStepsMax;

TEST(SkippedUpdates, StepsWithoutAnyUpdateAreDivergence) {
  SkippedUpdates skipped({{"actor", 2}});
  EXPECT_FALSE(skipped.observe({{"actor/skipped_updates", 5.0}}, 3, 1).diverging)
      << "one of its six was finite";
  SkippedUpdates::Seen seen;
  for (std::int64_t step = 2; step < 2 + kDivergedAfter; ++step) {
    EXPECT_TRUE(seen.diverged.ok()) << step;
    seen = skipped.observe({{"actor/skipped_updates", 6.0}}, 3, step);
    EXPECT_TRUE(seen.diverging);
  }
  support::expect_failure(seen.diverged, runtime::ErrorCode::kTaskFailed, {"the actor"});
}

// Workers report parts that add up to a number that is whole only nearly.
TEST(SkippedUpdates, ASumOfTheWorkersSharesIsCountedAsTheWholeNumberThatItIs) {
  SkippedUpdates skipped({{"actor", 1}});
  EXPECT_TRUE(skipped.observe({{"actor/skipped_updates", 3 - 1e-9}}, 3, 1).diverging);
  EXPECT_FALSE(skipped.observe({{"actor/skipped_updates", 1e-9}}, 3, 2).diverging);
}

TEST(SkippedUpdates, ARoleThatLearnsDoesNotHideOneThatDoesNot) {
  SkippedUpdates skipped({{"actor", 1}, {"critic", 4}});
  SkippedUpdates::Seen seen;
  for (std::int64_t step = 1; step <= kDivergedAfter; ++step)
    seen =
        skipped.observe({{"actor/skipped_updates", 0.0}, {"critic/skipped_updates", 8.0}}, 2, step);
  EXPECT_TRUE(seen.diverging);
  support::expect_failure(seen.diverged, runtime::ErrorCode::kTaskFailed, {"the critic"});
}

// While its critic warms up the policy has no updates that could be skipped.
TEST(SkippedUpdates, ARoleWithoutAnUpdateIsNotJudged) {
  SkippedUpdates skipped({{"actor", 1}, {"critic", 1}});
  const SkippedUpdates::Seen seen = skipped.observe({{"critic/skipped_updates", 0.0}}, 1, 1);
  EXPECT_FALSE(seen.diverging);
  EXPECT_TRUE(seen.diverged.ok());
}

TEST(SkippedUpdates, WeightsOfACheckpointBeginWithoutWhatWasSeenOfOthers) {
  SkippedUpdates skipped({{"actor", 1}});
  for (std::int64_t step = 1; step < kDivergedAfter; ++step)
    ASSERT_TRUE(skipped.observe({{"actor/skipped_updates", 1.0}}, 1, step).diverged.ok());
  skipped.reset();
  EXPECT_TRUE(skipped.observe({{"actor/skipped_updates", 1.0}}, 1, 2).diverged.ok());
}

}  // namespace
}  // namespace rl
