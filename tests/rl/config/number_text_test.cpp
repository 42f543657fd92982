#include "rl/config/number_text.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(NumberText, HasAsManyDigitsAsAreAskedFor) {
  EXPECT_EQ(number_text(0.5), "0.5");
  EXPECT_EQ(number_text(1e-6), "1e-06");
  EXPECT_EQ(number_text(2.0 / 3.0), "0.666667");
  EXPECT_EQ(number_text(2.0 / 3.0, 4), "0.6667");
  EXPECT_EQ(number_text(1234567.0, 4), "1.235e+06");
  EXPECT_EQ(number_text(1234567.0, 12), "1234567");
}

}  // namespace
}  // namespace rl
