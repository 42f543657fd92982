#include "rl/reward/styled_group.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

TEST(StyledGroup, EndsBehindItsOwnBrace) {
  const std::string text = "5\\text{ a {b} }c}";
  const auto group = styled_group_at(text, 1);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->inside, " a {b} ");
  EXPECT_EQ(text.substr(group->end), "c}");
}

TEST(StyledGroup, WordsUnitsAndLettersAreToldApart) {
  const auto words = styled_group_at("\\textbf{cm}", 0),
             upright = styled_group_at("\\mathrm{cm}", 0),
             letters = styled_group_at("\\mathbf {v}", 0),
             starred = styled_group_at("\\operatorname*{max}", 0);
  ASSERT_TRUE(words && upright && letters && starred);
  EXPECT_TRUE(words->is_text && !words->is_upright);
  EXPECT_TRUE(!upright->is_text && upright->is_upright);
  EXPECT_TRUE(!letters->is_text && !letters->is_upright);
  EXPECT_TRUE(starred->is_upright);
  EXPECT_EQ(starred->inside, "max");
}

TEST(StyledGroup, OtherCommandsAndOpenBracesAreNone) {
  for (const char* text : {"text{a}", "\\frac{1}{2}", "\\tex{a}", "\\texts{a}", "\\text a",
                           "\\text{a", "\\text", "\\{a}", "\\"})
    EXPECT_FALSE(styled_group_at(text, 0)) << text;
}

}  // namespace
}  // namespace rl
