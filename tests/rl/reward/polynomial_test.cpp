#include "rl/reward/polynomial.h"

#include <gtest/gtest.h>

#include <limits>

namespace rl {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

Quotient fraction(std::int64_t numerator, std::int64_t denominator = 1) {
  return *make_quotient(*make_rational(numerator, denominator));
}

Quotient root_of(std::int64_t value) { return *square_root(fraction(value)); }

TEST(Polynomial, FractionsAreInLowestTermsWithTheSignAbove) {
  EXPECT_EQ(make_rational(6, -4), (Rational{-3, 2}));
  EXPECT_EQ(make_rational(-6, -4), (Rational{3, 2}));
  EXPECT_EQ(make_rational(0, -7), (Rational{0, 1}));
  EXPECT_EQ(make_rational(1, 0), std::nullopt);
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(make_rational(lowest, 1), std::nullopt) << "its absolute value is too large";
  EXPECT_EQ(make_rational(1, lowest), std::nullopt);
}

TEST(Polynomial, TermsThatCancelLeaveZero) {
  const Quotient x = make_symbol("x"), nothing = *add(x, *negate(x));
  EXPECT_TRUE(nothing.numerator.terms.empty());
  EXPECT_EQ(constant_of(nothing), Rational{});
  EXPECT_FALSE(divide(x, nothing));
  EXPECT_FALSE(power(nothing, -1));
}

TEST(Polynomial, QuotientsAreComparedWithoutCommonFactors) {
  const Quotient x = make_symbol("x"), one = fraction(1);
  const Quotient sum = *add(x, one), difference = *add(x, *negate(one));
  const Quotient squares = *add(*power(x, 2), *negate(one));  // x^2 - 1
  EXPECT_EQ(same_value(*divide(squares, difference), sum), true);
  EXPECT_EQ(same_value(*divide(squares, sum), sum), false);
  EXPECT_EQ(same_value(*power(sum, -2), *divide(one, *multiply(sum, sum))), true);
}

TEST(Polynomial, RootsHaveNoSquareFactors) {
  EXPECT_EQ(same_value(root_of(12), *multiply(fraction(2), root_of(3))), true);
  EXPECT_EQ(constant_of(*multiply(root_of(6), root_of(24))), (Rational{12, 1}));
  EXPECT_EQ(constant_of(*square_root(fraction(4, 9))), (Rational{2, 3}));
  EXPECT_EQ(same_value(*square_root(fraction(1, 2)), *divide(root_of(2), fraction(2))), true);
  EXPECT_EQ(constant_of(root_of(2)), std::nullopt);
  EXPECT_FALSE(square_root(fraction(-4)));
  EXPECT_FALSE(square_root(make_symbol("x")));
}

TEST(Polynomial, EquationsAreTheSameByOneFactorForAllTerms) {
  const Quotient x = make_symbol("x"), y = make_symbol("y");
  const Quotient sum = *add(x, y), nothing = fraction(0);
  EXPECT_EQ(ratio_of(*multiply(fraction(-3, 2), sum), sum), (Rational{-3, 2}));
  EXPECT_EQ(ratio_of(*add(sum, x), sum), std::nullopt) << "2x + y has another factor for x";
  EXPECT_EQ(ratio_of(x, y), std::nullopt);
  EXPECT_EQ(ratio_of(nothing, sum), std::nullopt);
  EXPECT_EQ(ratio_of(sum, nothing), std::nullopt);
}

TEST(Polynomial, WhatExceedsALimitIsNothing) {
  const Quotient x = make_symbol("x"), large = fraction(kLargest);
  EXPECT_FALSE(add(large, fraction(1)));
  EXPECT_FALSE(multiply(large, fraction(2)));
  EXPECT_TRUE(power(x, 64));
  EXPECT_FALSE(power(x, 65));
  EXPECT_FALSE(multiply(*power(x, 64), x));
  EXPECT_FALSE(square_root(large)) << "too large to factor";
  EXPECT_EQ(same_value(*divide(large, x), *divide(fraction(kLargest - 1), *add(x, large))),
            std::nullopt);
}

}  // namespace
}  // namespace rl
