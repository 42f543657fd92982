#include "rl/reward/answer_name.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rl {
namespace {

using Pairs = std::vector<std::pair<const char*, const char*>>;

TEST(AnswerName, OneSymbolIsNotAnother) {
  for (const auto& [a, b] :
       Pairs{{"x = 3", "y = 3"}, {"AB = 5", "AC = 5"}, {"\\alpha = 1", "\\beta = 1"}}) {
    EXPECT_TRUE(have_different_names(a, b)) << a << ", " << b;
    EXPECT_TRUE(have_different_names(b, a)) << a << ", " << b;
  }
  for (const auto& [a, b] : Pairs{{"n = 3", "N = 3"}, {"AB = 5", "BA = 5"}, {"x = 3", "x = 4"}})
    EXPECT_FALSE(have_different_names(a, b)) << a << ", " << b;
}

TEST(AnswerName, IndicesAndArgumentsTellThemApart) {
  for (const auto& [a, b] : Pairs{{"x_1 = 2", "x_2 = 2"},
                                  {"a_{10} = 2", "a_{11} = 2"},
                                  {"f(1) = 5", "f(2) = 5"},
                                  {"P(A) = 5", "P(B) = 5"}})
    EXPECT_TRUE(have_different_names(a, b)) << a << ", " << b;
  for (const auto& [a, b] : Pairs{{"x = 2", "x_1 = 2"}, {"f(x) = 5", "f(y) = 5"}})
    EXPECT_FALSE(have_different_names(a, b)) << a << ", " << b;
}

TEST(AnswerName, WhatMayMeanTheSameIsNotDifferent) {
  for (const auto& [a, b] : Pairs{{"3", "x = 3"},
                                  {"3", "4"},
                                  {"y = 3", "f(x) = 3"},
                                  {"\\angle ABC = 3", "x = 3"},
                                  {"x < 3", "y < 3"}})
    EXPECT_FALSE(have_different_names(a, b)) << a << ", " << b;
}

TEST(AnswerName, PointsOfOtherLettersAreOthers) {
  EXPECT_TRUE(have_different_names("(x,y) = (1,2)", "(a,b) = (1,2)"));
  EXPECT_FALSE(have_different_names("(x,y) = (1,2)", "(x, y) = (2,1)"));
}

}  // namespace
}  // namespace rl
