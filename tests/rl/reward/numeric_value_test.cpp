#include "rl/reward/numeric_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

namespace rl {
namespace {

TEST(NumericValue, IdentitiesHoldAtEveryPoint) {
  EXPECT_TRUE(same_at_points("\\sin^2 x+\\cos^2 x", "1"));
  EXPECT_TRUE(same_at_points("\\sin^2 x+\\cos^2 x-1", "0")) << "what is lost to cancellation";
  EXPECT_TRUE(same_at_points("\\cos(x+y)", "\\cos x\\cos y-\\sin x\\sin y"));
  EXPECT_FALSE(same_at_points("\\sin x", "\\cos x"));
  EXPECT_FALSE(same_at_points("\\ln(ab)", "\\ln a+\\ln b")) << "not where both are negative";
  EXPECT_FALSE(same_at_points("a", "b"));
  EXPECT_FALSE(same_at_points("x_1", "x_2"));
}

TEST(NumericValue, WhatHasNoValueIsEqualToNothing) {
  EXPECT_FALSE(same_at_points("\\frac{1}{0}", "\\frac{1}{0}"));
  EXPECT_FALSE(same_at_points("\\infty", "\\infty"));
  EXPECT_FALSE(same_at_points("\\tan\\frac{\\pi}{2}", "\\tan\\frac{\\pi}{2}"));
  EXPECT_FALSE(same_at_points("\\ln 0", "\\ln 0"));
  EXPECT_FALSE(same_at_points("x +", "x +"));
}

TEST(NumericValue, NeighboursOfHugeNumbersAreNotTheSame) {
  EXPECT_FALSE(same_at_points("2^{64}-1", "2^{64}"));
  EXPECT_FALSE(same_at_points("3^{50}-1", "3^{50}"));
  EXPECT_FALSE(same_at_points("\\binom{70}{35}-1", "\\binom{70}{35}"));
  EXPECT_FALSE(same_at_points("\\exp(-50)", "2\\exp(-50)"));
  EXPECT_FALSE(same_at_points("\\exp(-50)", "0"));
}

// The points are no whole numbers, and letters have their own signs.
TEST(NumericValue, PointsDecideNothingAboutRoundingAndEverythingAboutSigns) {
  EXPECT_FALSE(same_at_points("\\lfloor n/2\\rfloor+1", "\\lceil n/2\\rceil"));
  for (const auto& [a, b] : {std::pair("x", "y"), {"a", "d"}, {"c", "g"}, {"k", "n"}, {"m", "n"}}) {
    const std::string x = a, y = b;
    EXPECT_FALSE(same_at_points("|" + x + "|+|" + y + "|", "|" + x + "+" + y + "|")) << a << b;
    EXPECT_FALSE(same_at_points("|" + x + y + "|", x + y)) << a << b;
  }
}

TEST(NumericValue, RootsOfNegativeNumbers) {
  EXPECT_TRUE(same_at_points("\\sqrt[3]{-8}", "-2")) << "odd ones are real";
  EXPECT_TRUE(same_at_points("\\sqrt{-4}", "2i"));
  EXPECT_TRUE(same_at_points("\\sqrt{(-4)\\cdot 1}", "2i"));
  EXPECT_FALSE(same_at_points("\\sqrt{x^2}", "x"));
}

TEST(NumericValue, OfFormulasWithoutLetters) {
  EXPECT_NEAR(real_value("\\frac{2}{\\sqrt 3}").value(), 2 / std::sqrt(3.0), 1e-15);
  EXPECT_NEAR(real_value("3\\pi").value(), 9.42477796076938, 1e-13);
  EXPECT_EQ(real_value("\\lfloor -3.2\\rfloor"), -4.0);
  EXPECT_EQ(real_value("\\lceil 3\\rceil"), 3.0);
  EXPECT_FALSE(real_value("x"));
  EXPECT_FALSE(real_value("2i"));
  EXPECT_FALSE(real_value("word"));
}

}  // namespace
}  // namespace rl
