#include "rl/reward/latex_looks.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rl {
namespace {

std::string without_looks(std::string text) {
  drop_looks(text);
  return text;
}

TEST(LatexLooks, FormsOfOneFormulaAreOneText) {
  const std::pair<const char*, const char*> cases[] = {{"\\textcolor{red}{5}", "5"},
                                                       {"\\color[rgb]{1,0,0}5", "5"},
                                                       {"\\underline{\\emph{5}}", "5"},
                                                       {"\\left(x\\right)", "(x)"},
                                                       {"\\dfrac12", "\\frac12"},
                                                       {"{\\rm cm}", "\\mathrm{ cm}"},
                                                       {"\\mathbf i", "\\mathbf{i}"},
                                                       {"\\\\frac{1}{2}", "\\frac{1}{2}"},
                                                       {"10,\\!080", "10,080"},
                                                       {"{5 \\choose 2}", "{\\binom{5 }{2}}"},
                                                       {"5 \\choose 2", "{\\binom{5 }{2}}"}};
  for (const auto& [text, plain] : cases) EXPECT_EQ(without_looks(text), plain) << text;
}

TEST(LatexLooks, CommandsThatBeginAlikeStay) {
  for (const char* text : {"\\leftarrow", "\\bigcup", "\\colonequals"})
    EXPECT_EQ(without_looks(text), text);
  EXPECT_EQ(without_looks("\\pi\\,r"), "\\pi r") << "no command \\pir";
}

TEST(LatexLooks, RowsOfMatricesEndWithTheirLines) {
  EXPECT_EQ(without_looks("\\begin{pmatrix}1\\\\2\\end{pmatrix}"),
            "\\begin{pmatrix}1\n2\\end{pmatrix}");
}

TEST(LatexLooks, ArgumentsWithoutAnEndStay) {
  for (const char* text : {"\\underline{5", "\\color{red", "\\textcolor[rgb", "\\underline"})
    EXPECT_EQ(without_looks(text), text);
}

}  // namespace
}  // namespace rl
