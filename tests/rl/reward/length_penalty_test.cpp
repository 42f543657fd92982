#include "rl/reward/length_penalty.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(LengthPenalty, FallsLinearlyThroughTheBufferAndGoesOnFalling) {
  LengthPenalty penalty;
  penalty.enabled = true;
  penalty.response_max = 1000;
  penalty.buffer = 100;
  penalty.factor = 2;
  EXPECT_DOUBLE_EQ(penalty.of(0), 0) << "short responses get no bonus";
  EXPECT_DOUBLE_EQ(penalty.of(900), 0);
  EXPECT_DOUBLE_EQ(penalty.of(950), -1);
  EXPECT_DOUBLE_EQ(penalty.of(1000), -2);
  EXPECT_DOUBLE_EQ(penalty.of(1050), -3);
}

TEST(LengthPenalty, WithoutItNoLengthCosts) { EXPECT_EQ(LengthPenalty().of(1'000'000), 0); }

}  // namespace
}  // namespace rl
