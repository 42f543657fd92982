#include "rl/run/divergence_detector.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

TEST(DivergenceDetector, FailsAfterConsecutiveStepsWithoutAnUpdate) {
  DivergenceDetector detector;
  for (std::int64_t step = 1; step < DivergenceDetector::kStepsMax; ++step) {
    EXPECT_TRUE(detector.observe(step, false, "actor").ok()) << step;
    EXPECT_TRUE(detector.diverging());
  }
  const runtime::Status diverged = detector.observe(DivergenceDetector::kStepsMax, false, "actor");
  EXPECT_EQ(diverged.code(), runtime::ErrorCode::kTaskFailed);
  for (const char* said :
       {"step 10", "10 consecutive steps", "the actor", "optim.lr", "trainer.resume_from_path"})
    EXPECT_NE(diverged.message().find(said), std::string::npos)
        << said << ": " << diverged.message();
}

TEST(DivergenceDetector, StartsAgainAfterAnUpdate) {
  DivergenceDetector detector;
  for (std::int64_t step = 1; step < DivergenceDetector::kStepsMax; ++step)
    ASSERT_TRUE(detector.observe(step, false, "critic").ok()) << step;
  EXPECT_TRUE(detector.observe(10, true, "critic").ok());
  EXPECT_FALSE(detector.diverging());
  EXPECT_TRUE(detector.observe(11, false, "critic").ok());
}

}  // namespace
}  // namespace rl
