#include "rl/reward/answer.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(AnswerOf, TakesTheMostExplicitAnswer) {
  EXPECT_EQ(answer_of("so 3, thus \\boxed{ 1{,}000 } #### 5"), answer_of("\\boxed{1000}"));
  EXPECT_EQ(answer_of("<answer>Paris</answer> of 12"), answer_of("<answer> Paris </answer>"));
  EXPECT_EQ(answer_of("2 + 2 = 4\n#### 4.0\nthe 5th"), "4");
  EXPECT_EQ(answer_of("I had 3.\nAnswer: 7\nbye 9"), "7");
  EXPECT_EQ(answer_of("it is 12, or rather 1,200."), "1200");
  EXPECT_EQ(answer_of("  abcd \n"), "abcd");
  EXPECT_EQ(answer_of(""), "");
}

TEST(AnswerOf, GivesEqualAnswersEqualTexts) {
  EXPECT_EQ(answer_of("The answer is 42."), answer_of("42.0"));
  EXPECT_EQ(answer_of("#### $42"), answer_of("that makes 42"));
  EXPECT_EQ(answer_of("\\boxed{\\dfrac{1}{2}}"), answer_of("\\boxed{\\frac{1}{2}}"));
  EXPECT_NE(answer_of("\\boxed{x+1}"), answer_of("\\boxed{x-1}"));
}

}  // namespace
}  // namespace rl
