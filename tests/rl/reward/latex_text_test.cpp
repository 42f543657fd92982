#include "rl/reward/latex_text.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(LatexText, CommandsAreWholeWords) {
  std::string text = "\\left(\\leftarrow\\left\\{";
  replace_command(text, "\\left", "");
  EXPECT_EQ(text, "(\\leftarrow\\{");
}

TEST(LatexText, BracesMatchButForThoseOfSets) {
  EXPECT_EQ(closing_brace("{a{b}\\}}c", 0), 7u);
  EXPECT_EQ(closing_brace("{a", 0), std::string::npos);
}

TEST(LatexText, PartsAreSplitOutsideBrackets) {
  EXPECT_EQ(split_parts("(1, 2), [3,4) , 5", ","),
            (std::vector<std::string>{"(1, 2)", "[3,4)", "5"}));
  EXPECT_EQ(split_parts("", ","), std::vector<std::string>{""});
}

}  // namespace
}  // namespace rl
