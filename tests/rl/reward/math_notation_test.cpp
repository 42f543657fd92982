// Answers in other notations, by what math_answer.h says of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rl/reward/math_answer.h"

namespace rl {
namespace {

struct Notations {
  std::string a, b;
};

void expect_all(bool equal, const std::vector<Notations>& pairs) {
  for (const auto& [a, b] : pairs) {
    EXPECT_EQ(equivalent(a, b), equal)
        << a << "   " << b << "   (" << normal_form(a) << " | " << normal_form(b) << ")";
    EXPECT_EQ(equivalent(b, a), equal) << b << "   " << a;
  }
}

// Relations that turn: no interval, and no end of turning them round.
TEST(MathNotation, ChainsOfBothDirectionsAreNoIntervals) {
  for (const char* chain : {"1>x<3", "2>x<1", "3>2<5", "1<x>3", "\\{x \\mid 1>x<3\\}",
                            "\\{x|x\\ge 2\\} \\cap \\{x|x<5\\}", "\\{x|x>2\\} \\cup \\{x|x<-2\\}"})
    expect_all(false, {{chain, "(0,1)"}, {chain, "[2,5)"}, {chain, "x"}});
  expect_all(true, {{"3>x>1", "(1,3)"},
                    {"x\\ge 2", "[2,\\infty)"},
                    {"\\{x|x>2\\}\\cup\\{x|x<-2\\}", "\\{x|x<-2\\}\\cup\\{x|x>2\\}"}});
}

TEST(MathNotation, ListsOfIntervalsKeepTheirBrackets) {
  expect_all(true, {{"(0,1],[2,3)", "[2,3),(0,1]"},
                    {"(0,\\frac{1}{2}],[2,3)", "(0,0.5],[2,3)"},
                    {"(-\\infty,-1] \\text{ or } [\\frac{1}{2},\\infty)",
                     "(-\\infty,-1] \\text{ or } [0.5,\\infty)"}});
}

TEST(MathNotation, LettersAndSignsOfUnicode) {
  expect_all(true, {{"\U0001d7d3", "5"},
                    {"\U0001d7cf\U0001d7ce", "10"},
                    {"2\U0001d465+1", "2x+1"},
                    {"\U0001d401", "B"},
                    {"\U0001d70b", "\\pi"},
                    {"\U0001d703 = 3", "\\theta = 3"},
                    {"\u230a3.5\u230b", "3"},
                    {"\u23083.5\u2309", "4"},
                    {"\u2223x\u2223", "|x|"},
                    {"5\u3002", "5"},
                    {"1\u2019000", "1000"},
                    {"1'000'000", "1000000"}});
  expect_all(false, {{"\U0001d7d3", "6"},
                     {"\U0001d465", "y"},
                     {"\u230a3.5\u230b", "4"},
                     {"f'00", "f00"},
                     {"1'00", "100"}});
}

TEST(MathNotation, ColoursLinesAndSizesDoNotShow) {
  expect_all(true, {{"\\textcolor{red}{5}", "5"},
                    {"\\textcolor{red}{x=5}", "5"},
                    {"\\color{red}5", "5"},
                    {"\\textcolor[rgb]{1,0,0}{5}", "5"},
                    {"\\pi\\,r^2", "\\pi r^2"},
                    {"{\\color{red}{5}}", "5"},
                    {"\\underline{5}", "5"},
                    {"\\underline{\\underline{12}}", "12"},
                    {"\\large 5", "5"},
                    {"{\\Large \\frac12}", "0.5"},
                    {"\\phantom{0}5", "5"}});
  expect_all(false, {{"\\textcolor{red}{5}", "6"}, {"\\overline{5}", "5"}, {"\\largex 5", "5"}});
}

TEST(MathNotation, BracketsAndSets) {
  expect_all(true, {{"\\lbrack1,2\\rbrack", "[1,2]"},
                    {"]1,2[", "(1,2)"},
                    {"[1,2[", "[1,2)"},
                    {"]-\\infty;2]", "(-\\infty,2]"},
                    {"]0,1[\\cup]2,3[", "(0,1)\\cup(2,3)"},
                    {"x \\in ]1,2]", "(1,2]"},
                    {"\\{x\\mid x>2\\}", "(2,\\infty)"},
                    {"\\{x: x>2\\}", "x>2"},
                    {"\\{x \\in \\mathbb{R} : -1 \\le x < 3\\}", "[-1,3)"},
                    {"\\left\\{x\\in\\mathbb{R}\\,\\middle|\\,-1<x\\le 3\\right\\}", "(-1,3]"},
                    {"5 \\choose 2", "10"},
                    {"{1,2}\u222a{3}", "{1,2,3}"},
                    {"{5 \\choose 2}", "\\binom52"},
                    {"{5 \\choose 2}", "10"},
                    {"\\|v\\|", "\\lVert v\\rVert"},
                    {"6:8", "3:4"},
                    {"2:4:6", "1:2:3"},
                    {"\\frac12:\\frac13", "3:2"}});
  expect_all(false, {{"]1,2[", "[1,2]"},
                     {"]1,2]", "[1,2)"},
                     {"\\{x\\mid x>2\\}", "[2,\\infty)"},
                     {"\\{x \\in \\mathbb{Z} : x>2\\}", "(2,\\infty)"},
                     {"\\{2x \\mid x>2\\}", "(2,\\infty)"},
                     {"{1,2}\u222a{3}", "{1,2,4}"},
                     {"{5 \\choose 2}", "20"},
                     {"\\|v\\|", "v"},
                     {"6:8", "4:3"},
                     {"6:8:1", "3:4:1"},
                     {"9:30", "3:10"},
                     {"3:4", "3"}});
}

// Every form is looked for in one pass, however often a text begins it.
TEST(MathNotation, WhatBeginsFormsAgainAndAgainEnds) {
  for (const std::string part : {"\\textcolor{", "\\underline{", "\\color{",
                                 "{\\choose",    "]1,",          "[",
                                 "5 kg m^",      "5 m/s",        "5\\mu\\text{",
                                 "5^o",          "negative ",    "5 and a half ",
                                 "\U0001d7d3",   "5\u5143",      "\\{x|x>",
                                 "1:",           "1e",           "5\\frac{m}{",
                                 "1'000",        "5\\cdot m",    "\\text{ degrees}"}) {
    for (const std::string before : {"", "\\sin ", "5"}) {
      std::string odd = before;
      while (odd.size() + part.size() <= 1900) odd += part;
      EXPECT_TRUE(equivalent(odd, odd)) << odd.substr(0, 40);
      EXPECT_FALSE(equivalent(odd, "12345")) << odd.substr(0, 40);
      EXPECT_FALSE(equivalent(odd, odd + "7z")) << odd.substr(0, 40);
    }
  }
}

}  // namespace
}  // namespace rl
