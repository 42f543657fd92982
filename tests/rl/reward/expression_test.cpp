// The values of formulas; tests of the reader have its grammar.
#include "rl/reward/expression.h"

#include <gtest/gtest.h>

#include <utility>

namespace rl {
namespace {

// nullopt: one of them is no formula.
std::optional<bool> are_same(const char* left, const char* right) {
  const auto a = read_expression(left), b = read_expression(right);
  return a && b ? same_value(*a, *b) : std::nullopt;
}

TEST(Expression, FormsOfOneValueAreTheSame) {
  const std::pair<const char*, const char*> cases[] = {{"\\frac12", "0.5"},
                                                       {"1\\frac12", "3/2"},
                                                       {"3\\times10^{5}", "300000"},
                                                       {"(x+1)^2", "x^2+2x+1"},
                                                       {"\\sqrt{12}", "2\\sqrt3"},
                                                       {"\\sqrt[3]{-8}", "-2"},
                                                       {"\\sqrt[3]{\\frac{8}{27}}", "2/3"}};
  for (const auto& [left, right] : cases) EXPECT_EQ(are_same(left, right), true) << left;
}

TEST(Expression, FunctionsOfDifferentValuesAreDifferentSymbols) {
  EXPECT_EQ(are_same("\\sin(x+1)", "\\sin(1+x)"), true);
  EXPECT_EQ(are_same("\\sin(x)", "\\sin(y)"), false);
  EXPECT_EQ(are_same("\\sin(x)", "\\cos(x)"), false);
  EXPECT_EQ(are_same("\\log_2 3", "\\log_3 2"), false);
}

TEST(Expression, WhatHasNoExactValueIsNone) {
  for (const char* text : {"1/0", "the answer", "x=1", "1,2", "2^{1000}", ""})
    EXPECT_FALSE(read_expression(text)) << text;
}

}  // namespace
}  // namespace rl
