#include "rl/run/lost_weights.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

TEST(LostWeights, AreThoseThatNoStepInARowCouldUpdate) {
  LostWeights weights;
  for (std::int64_t step = 1; step < LostWeights::kStepsMax; ++step)
    EXPECT_TRUE(weights.observe(step, true, "actor").ok()) << step;
  const runtime::Status lost = weights.observe(LostWeights::kStepsMax, true, "actor");
  EXPECT_EQ(lost.code(), runtime::ErrorCode::kTaskFailed);
  for (const char* said :
       {"step 10", "10 steps in a row", "the actor", "optim.lr", "trainer.resume_from_path"})
    EXPECT_NE(lost.message().find(said), std::string::npos) << said << ": " << lost.message();
}

TEST(LostWeights, OneUpdateThatIsTakenSavesThem) {
  LostWeights weights;
  for (std::int64_t step = 1; step < LostWeights::kStepsMax; ++step)
    ASSERT_TRUE(weights.observe(step, true, "critic").ok()) << step;
  EXPECT_TRUE(weights.observe(10, false, "critic").ok());
  EXPECT_TRUE(weights.observe(11, true, "critic").ok());
}

}  // namespace
}  // namespace rl
