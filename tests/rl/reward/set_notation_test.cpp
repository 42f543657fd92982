#include "rl/reward/set_notation.h"

#include <gtest/gtest.h>

#include <utility>

namespace rl {
namespace {

TEST(SetNotation, BracketsThatTurnAwayAreRound) {
  const std::pair<const char*, const char*> cases[] = {{"]1,2[", "(1,2)"},
                                                       {"[1,2[", "[1,2)"},
                                                       {"]1,2]", "(1,2]"},
                                                       {"]0,1[\\cup]2,3[", "(0,1)\\cup(2,3)"},
                                                       {"[1,2]", "[1,2]"},
                                                       {"[1,2], [3,4]", "[1,2], [3,4]"},
                                                       {"\\sqrt[3]{2}", "\\sqrt[3]{2}"},
                                                       {"]1[", "]1["},
                                                       {"]1,2", "]1,2"},
                                                       {"[[1,2],[3,4]]", "[[1,2],[3,4]]"},
                                                       {"(0,1],[2,3)", "(0,1],[2,3)"},
                                                       {"[1,[2,3]]", "[1,[2,3]]"},
                                                       {"", ""}};
  for (const auto& [text, round] : cases) EXPECT_EQ(with_round_brackets(text), round) << text;
}

TEST(SetNotation, ConditionsOfSetsAreInequalities) {
  EXPECT_EQ(condition_of_set("\\{x | x > 2\\}"), "x > 2");
  EXPECT_EQ(condition_of_set("{x : x > 2}"), "x > 2");
  EXPECT_EQ(condition_of_set("\\{x \\in R| x<1, x > 2\\}"), "x<1, x > 2");
  for (const char* other : {"\\{x | x = 2\\}", "\\{2x | x > 2\\}", "\\{x \\in Z| x>2\\}",
                            "\\{x | y > 2\\}", "\\{x|x>2\\} \\cup \\{x|x<-2\\}",
                            "{x|x>2}\\cap{x|x<5}", "\\{1,2\\}", "\\{|x|\\}", "\\{\\}", "{", ""})
    EXPECT_FALSE(condition_of_set(other)) << other;
}

}  // namespace
}  // namespace rl
