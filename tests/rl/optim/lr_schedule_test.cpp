#include "rl/optim/lr_schedule.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

using Kind = LrScheduleOptions::Kind;

TEST(LrSchedule, WarmsUpFromAboveZeroToThePeak) {
  const LrScheduleOptions options{.kind = Kind::kConstant, .peak = 1.0, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(options, 3), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1000), 1.0);
}

TEST(LrSchedule, AWarmUpMayBeginAboveNothing) {
  const LrScheduleOptions options{
      .kind = Kind::kConstant, .peak = 2.0, .warmup_steps = 4, .start_ratio = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 1.25);
  EXPECT_DOUBLE_EQ(learning_rate(options, 3), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(options, 4), 2.0);
}

TEST(LrSchedule, LinearReachesTheFloorAtTheEndAndStaysThere) {
  const LrScheduleOptions options{
      .kind = Kind::kLinear, .peak = 2.0, .warmup_steps = 2, .total_steps = 12, .min_ratio = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(options, 2), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(options, 7), 2.0 * 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(options, 12), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(options, 99), 0.2);
}

TEST(LrSchedule, CosineGoesThroughTheMiddleHalfWay) {
  const LrScheduleOptions options{.kind = Kind::kCosine, .peak = 1.0, .total_steps = 10};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 1.0);
  EXPECT_NEAR(learning_rate(options, 5), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(options, 10), 0.0, 1e-12);
}

TEST(LrSchedule, WsdStaysUpAndGoesDownInItsLastPart) {
  const LrScheduleOptions options{.kind = Kind::kWsd,
                                  .peak = 1.0,
                                  .warmup_steps = 10,
                                  .total_steps = 110,
                                  .min_ratio = 0.2,
                                  .decay_ratio = 0.25};
  EXPECT_DOUBLE_EQ(learning_rate(options, 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 10), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(options, 85), 1.0);
  EXPECT_NEAR(learning_rate(options, 95), 0.2 + 0.8 * 0.6, 1e-12);
  EXPECT_NEAR(learning_rate(options, 110), 0.2, 1e-12);
  EXPECT_EQ(*parse_lr_schedule("wsd"), Kind::kWsd);
}

TEST(LrSchedule, AWarmUpLongerThanTheRunNeverDividesByZero) {
  const LrScheduleOptions options{
      .kind = Kind::kCosine, .peak = 1.0, .warmup_steps = 20, .total_steps = 10};
  EXPECT_DOUBLE_EQ(learning_rate(options, 19), 1.0);
  EXPECT_GE(learning_rate(options, 20), 0.0);
}

TEST(LrSchedule, RefusesUnknownNames) {
  EXPECT_EQ(*parse_lr_schedule("cosine"), Kind::kCosine);
  const auto wrong = parse_lr_schedule("cosin");
  EXPECT_EQ(wrong.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(wrong.status().message().find("cosin"), std::string::npos);
}

TEST(LrSchedule, AWarmUpBeyondTheRunIsOdd) {
  EXPECT_EQ(schedule_note({.warmup_steps = 20}, 20), std::nullopt);
  EXPECT_EQ(
      *schedule_note({.warmup_steps = 30}, 20),
      "lr_warmup_steps=30: the run has 20 steps, and its learning rate never gets to its peak");
}

TEST(LrSchedule, IsTold) {
  EXPECT_EQ(schedule_text({.peak = 1e-6}), "1e-06, constant");
  EXPECT_EQ(schedule_text({.kind = Kind::kCosine,
                           .peak = 2e-5,
                           .warmup_steps = 3,
                           .total_steps = 150,
                           .min_ratio = 0.1}),
            "2e-05, after a warm-up of 3 step(s), cosine to 2e-06 at step 150");
  EXPECT_EQ(schedule_text({.kind = Kind::kLinear, .peak = 2e-5}), "2e-05, linear to 0")
      << "where the last step is not known";
}

}  // namespace
}  // namespace rl
