#include "rl/algo/kl_controller.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(KlController, AFixedOneStays) {
  EXPECT_EQ(next_kl_coefficient({.coefficient = 0.5}, 0.5, 100.0, 1000), 0.5);
}

TEST(KlController, AnAdaptiveOneSteersToItsTargetByAtMostAFifth) {
  const KlControllerOptions options{
      .coefficient = 0.1, .adaptive = true, .target = 0.2, .horizon = 1000};
  EXPECT_DOUBLE_EQ(next_kl_coefficient(options, 0.1, 0.2, 100), 0.1);
  EXPECT_DOUBLE_EQ(next_kl_coefficient(options, 0.1, 0.22, 100), 0.1 * (1 + 0.1 * 0.1));
  EXPECT_DOUBLE_EQ(next_kl_coefficient(options, 0.1, 50.0, 100), 0.1 * (1 + 0.2 * 0.1));
  EXPECT_DOUBLE_EQ(next_kl_coefficient(options, 0.1, -3.0, 100), 0.1 * (1 - 0.2 * 0.1));
}

}  // namespace
}  // namespace rl
