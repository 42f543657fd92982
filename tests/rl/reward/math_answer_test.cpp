#include "rl/reward/math_answer.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

struct Pair {
  const char* a;
  const char* b;
};

constexpr Pair kSame[] = {
    {"5", "5"},
    {"5", " 5 "},
    {"5", "5.0"},
    {"5", "5."},
    {"$5$", "5"},
    {"\\(5\\)", "5"},
    {"\\[5\\]", "5"},
    {"\\boxed{5}", "5"},
    {"-3", "−3"},
    {"+3", "3"},
    {".5", "0.5"},
    {"0.5", "\\frac{1}{2}"},
    {"1/2", "\\frac{1}{2}"},
    {"\\frac12", "\\frac{1}{2}"},
    {"\\frac1{72}", "\\frac{1}{72}"},
    {"\\frac{1}2", "1/2"},
    {"\\dfrac{1}{2}", "\\tfrac{1}{2}"},
    {"\\frac{2}{4}", "\\frac{1}{2}"},
    {"-\\frac{1}{2}", "\\frac{-1}{2}"},
    {"\\frac{-1}{2}", "\\frac{1}{-2}"},
    {"-1/2", "-0.5"},
    {"1\\frac{1}{2}", "\\frac{3}{2}"},
    {"2\\frac13", "7/3"},
    {"50\\%", "50"},
    {"50%", "50\\%"},
    {"90^\\circ", "90"},
    {"90^{\\circ}", "90"},
    {"90°", "90 degrees"},
    {"\\$18.90", "18.90"},
    {"18.9", "$18.90"},
    {"1,000", "1000"},
    {"1,234,567", "1234567"},
    {"12{,}345", "12345"},
    {"1\\,000", "1000"},
    {"x=5", "5"},
    {"x = 5", "5"},
    {"k=-\\frac{1}{3}", "-1/3"},
    {"5\\text{ cm}", "5"},
    {"5 \\text{ cm}^2", "5"},
    {"5 \\mathrm{~km}", "5"},
    {"12 inches", "12"},
    {"24 \\text{ hours}", "24"},
    {"18 dollars", "\\$18"},
    {"\\text{Evelyn}", "Evelyn"},
    {"\\text{even}", "Even"},
    {"\\textbf{(C)}", "C"},
    {"(C)", "C"},
    {"\\text{(C)}", "\\text{C}"},
    {"\\mathbf{B}", "B"},
    {"\\sqrt{12}", "2\\sqrt{3}"},
    {"\\sqrt3", "\\sqrt{3}"},
    {"2\\sqrt3", "\\sqrt{3}\\cdot 2"},
    {"\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"},
    {"\\sqrt{\\frac{1}{2}}", "\\frac{\\sqrt2}{2}"},
    {"\\sqrt{16}", "4"},
    {"\\sqrt[3]{27}", "3"},
    {"8^{1/3}", "2"},
    {"4^{\\frac{1}{2}}", "2"},
    {"\\frac{1}{1+\\sqrt{2}}", "\\sqrt{2}-1"},
    {"(1+\\sqrt{2})^2", "3+2\\sqrt{2}"},
    {"sqrt(2)/2", "\\frac{\\sqrt{2}}{2}"},
    {"2\\pi", "\\pi \\cdot 2"},
    {"\\frac{\\pi}{2}", "\\frac12\\pi"},
    {"2π", "2\\pi"},
    {"4pi", "4\\pi"},
    {"2^{10}", "1024"},
    {"2^10", "1024"},
    {"3\\times10^5", "300000"},
    {"3 \\cdot 10^{-2}", "0.03"},
    {"5!", "120"},
    {"10^{-3}", "0.001"},
    {"x+2", "2+x"},
    {"2x+3", "3+2x"},
    {"(x+1)^2", "x^2+2x+1"},
    {"x(x-1)", "x^2-x"},
    {"2xy", "2yx"},
    {"\\frac{x^2-1}{x-1}", "x+1"},
    {"2(x+y)", "2x+2y"},
    {"-\\left(x-1\\right)", "1-x"},
    {"a_1+a_2", "a_{2}+a_{1}"},
    {"\\alpha\\beta", "\\beta\\alpha"},
    {"\\log_2 3", "\\log_{2}{3}"},
    {"\\sin^2 x", "(\\sin x)^2"},
    {"\\sin(x)", "\\sin x"},
    {"(1,2)", "(1, 2)"},
    {"\\left(1,\\frac{1}{2}\\right)", "(1,0.5)"},
    {"(3,\\frac{\\pi}{2})", "\\left( 3, \\frac{\\pi}{2} \\right)"},
    {"[0,1)", "\\left[0,1\\right)"},
    {"(-\\infty,2]", "(-∞, 2]"},
    {"(-\\infty,0)\\cup(1,\\infty)", "(1,\\infty)\\cup(-\\infty,0)"},
    {"x\\in[0,1]", "[0,1]"},
    {"x \\in [0,1]", "[0,1]"},
    {"\\{1,2\\}", "\\{2,1\\}"},
    {"\\{\\frac12,3\\}", "\\{3, 0.5\\}"},
    {"1,2", "2, 1"},
    {"1 \\text{ and } 2", "1,2"},
    {"1 \\text{ or } 2", "2,1"},
    {"\\pm 2", "-2,2"},
    {"1\\pm\\sqrt{2}", "1+\\sqrt2, 1-\\sqrt2"},
    {"1, 2, 3", "3,2,1"},
    {"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
     "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}"},
    {"\\begin{pmatrix}\\frac12\\\\0\\end{pmatrix}", "\\begin{pmatrix}0.5\\\\0\\end{pmatrix}"},
    {"y=2x+3", "y = 3 + 2x"},
    {"x+y=5", "5 = y+x"},
    {"1011_2", "1011_{2}"},
    {"x\\le 3", "x \\leq 3"},
    {"\\infty", "\\infty"},
    {"11:30", "11:30"},
    {"\\frac{a}{b}", "a/b"},
    {"3 : 4", "3:4"},
    {"\\text{June 20}", "June 20"},
};
static_assert(std::size(kSame) > 100);

TEST(MathAnswer, PairsThatSayTheSame) {
  for (const auto& [a, b] : kSame) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b << "   (" << normal_form(a) << " | "
                                  << normal_form(b) << ")";
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathAnswer, PairsThatDiffer) {
  const Pair pairs[] = {
      {"5", "6"},
      {"5", "-5"},
      {"5", ""},
      {"", "5"},
      {"0.33", "\\frac{1}{3}"},
      {"\\frac{1}{2}", "\\frac{2}{1}"},
      {"\\sqrt{2}", "2"},
      {"\\sqrt{2}", "1.414"},
      {"2\\pi", "6.28"},
      {"x+2", "x-2"},
      {"x", "y"},
      {"no", "on"},
      {"blue", "lube"},
      {"(1,2)", "(2,1)"},
      {"(1,2)", "[1,2]"},
      {"[0,1)", "[0,1]"},
      {"\\{1,2\\}", "\\{1,3\\}"},
      {"1,2", "1,2,3"},
      {"(1,2)", "1,2"},
      {"1,23", "123"},
      {"(1,234)", "1234"},
      {"10", "1 0"},
      {"1011_2", "1011_3"},
      {"A", "B"},
      {"(C)", "(D)"},
      {"2^{10}", "2^{11}"},
      {"x^2", "2x"},
      {"\\sin x", "\\cos x"},
      {"\\log_2 3", "\\log_3 2"},
      {"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\4&3\\end{pmatrix}"},
      {"y=2x", "y=3x"},
      {"\\pm 2", "2"},
      {"1/0", "2/0"},
      {"\\frac{1}{\\sqrt{2}-\\sqrt{2}}", "3"},
      {"(-\\infty,0)\\cup(1,\\infty)", "(-\\infty,0)"},
      {"x\\le 3", "x\\ge 3"},
      {"3\\frac{1}{2}", "\\frac{3}{2}"},
      {"99999999999999999999", "99999999999999999998"},
  };
  for (const auto& [a, b] : pairs)
    EXPECT_FALSE(equivalent(a, b))
        << a << "   " << b << "   (" << normal_form(a) << " | " << normal_form(b) << ")";
}

// Numbers with separators between thousands are lists only next to one that shows it.
TEST(MathAnswer, ThousandsAreNotListsInAnotherOrder) {
  const Pair different[] = {
      {"123,456,789", "456,123,789"},
      {"1,234,567", "1,567,234"},
      {"58,500", "500,58"},
      {"-123,456,789", "456,-123,789"},
      {"\\$123,456,789", "\\$456,123,789"},
      {"123,456,789\\%", "456,123,789\\%"},
      {"123,456,789.5", "456,123,789.5"},
      {"123,456,789 + x", "456,123,789+x"},
      {"123,456,789, 5", "456,123,789, 5"},
      {"x = 123,456,789", "x = 456,123,789"},
      {"f(x) = 123,456,789", "f(x) = 456,123,789"},
      {"n^2 = 123,456,789", "n^2 = 456,123,789"},
      {"x < 123,456,789", "x < 456,123,789"},
  };
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
  const Pair same[] = {
      {"100,200,300", "300, 200, 100"}, {"100,200,300", "\\{300,200,100\\}"},
      {"1,234,567, 5", "5, 1,234,567"}, {"1,234 \\text{ and } 2,345", "2,345, 1,234"},
      {"x = 1,234,567", "x = 1234567"}, {"123,456,789", "123{,}456{,}789"},
  };
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathAnswer, ThousandsInBracketsAndBlanksAreNumbersToo) {
  const Pair same[] = {
      {"(0, 1,000)", "(0,1000)"},
      {"[0, 1,000]", "[0,1000]"},
      {"(2,000, 3,000)", "(2000, 3000)"},
      {"(1,000, 2)", "(1000,2)"},
      {"(5; 1,250)", "(5,1250)"},
      {"(5;1,250)", "(5,1250)"},
      {"\\{1,000\\}", "\\{1000\\}"},
      {"\\sqrt{1,024}", "32"},
      {"(1,000+1)", "1001"},
      {"1 500 m", "1500"},
      {"1,500 m", "1500"},
      {"1 500\\text{ m}", "1500"},
      {"1 234,5", "1234.5"},
      {"(1 000, 2)", "(1000,2)"},
      {"(0{,}5, 1{,}5)", "(0.5,1.5)"},
      {"(0,5; 1,5)", "(0.5,1.5)"},
      {"5,100,200", "200,100,5"},
      {"2,000,3,000", "2000,3000"},
      {"(1,234)", "(1,234)"},
      {"(1,000)", "1000"},
      {"\\frac{1,000}{3}", "\\frac{1000}{3}"},
      {"\\begin{pmatrix}1,000\\\\2\\end{pmatrix}", "\\begin{pmatrix}1000\\\\2\\end{pmatrix}"},
      {"x \\in (0, 1,000)", "(0,1000)"},
      {"(-\\infty, 1,000)\\cup(2,000, \\infty)", "(-\\infty,1000)\\cup(2000,\\infty)"},
      {"3 \\times 1,000", "3000"},
      {"x = 1 000", "1000"},
      {"(1,200), 5", "5, (1, 200)"},
      {"\\{100,200\\}", "\\{200,100\\}"},
      {"1\\,234{,}5", "1234.5"},
      {"1,000", "1000"},
      {"(x, 1,000)", "(x,1000)"},
      {"1 500 km", "1500"},
      {"-1 500 m", "-1500"},
      {"12 345 678", "12345678"},
      {"\\{0{,}5; 1{,}5\\}", "\\{1.5,0.5\\}"},
      {"0{,}5; 1{,}5", "0.5, 1.5"},
      {"x \\le 1,000", "x\\le 1000"},
      {"x_1 = 1,000, x_2 = 2", "1000, 2"},
  };
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
  const Pair different[] = {
      {"(1,000)", "(1,0)"},       {"\\{1,000\\}", "\\{0,1\\}"},
      {"(1,000,000)", "(1,0,0)"}, {"(1,000, 2)", "(1,0,2)"},
      {"1,000,2", "1,0,2"},       {"1,000", "1,0"},
      {"(1, 000)", "(1,0)"},      {"123,456,789_{10}", "456,123,789_{10}"},
      {"(1,234)", "1234"},        {"(x, 000)", "(x, 0)"},
      {"(100,200)", "(200,100)"}, {"58,500", "500,58"},
      {"1,005", "1,5"},           {"(1,005)", "(1,5)"},
      {"0,1,250", "01250"},       {"(1 000, 2)", "(1,000,2,2)"},
      {"[1,000,2]", "[1,0,2]"},   {"1,000,000", "1,0,0"},
      {"\\sqrt{1,024}", "1"},
  };
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathAnswer, MembersInBracketsAreNoThousands) {
  const Pair different[] = {{"(1,250)", "(1250)"},
                            {"(100,200)", "(100200)"},
                            {"(1,200,300)", "(1200300)"},
                            {"\\{100,200\\}", "\\{100200\\}"},
                            {"[100,200]", "[100200]"},
                            {"(100,200]", "(100200]"},
                            {"x \\in [100,200]", "[100200]"},
                            {"(100,200), 5", "(100200), 5"},
                            {"\\gcd(12,345)", "\\gcd(12345)"}};
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
  // Blanks, semicolons and "000" show where members end.
  const Pair same[] = {{"(0, 1,250)", "(0,1250)"},          {"(0, 1,250)", "(0, 1{,}250)"},
                       {"[1,250; 2,500]", "[1250,2500]"},   {"(1,250, 5)", "(1250,5)"},
                       {"(100, 200,300)", "(100,200,300)"}, {"(100,200)", "(100, 200)"}};
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathAnswer, DegreesCountInArgumentsOfFunctions) {
  const Pair same[] = {{"\\sin 30^\\circ", "\\frac12"},
                       {"\\cos 60^{\\circ}", "0.5"},
                       {"\\tan 45\u00b0", "1"},
                       {"\\sin(30^\\circ + 15^\\circ)", "\\frac{\\sqrt2}{2}"},
                       {"\\sin^2 30\\circ", "\\frac14"},
                       {"\\cos 80^\\circ", "\\sin 10^\\circ"},
                       {"2\\sin 10^\\circ \\cos 10^\\circ", "\\sin 20^\\circ"},
                       {"\\frac{\\sin 80^\\circ}{\\cos 80^\\circ}", "\\tan 80^\\circ"},
                       {"\\sin x^\\circ", "\\sin\\frac{\\pi x}{180}"},
                       {"\\sin x, 30^\\circ", "\\sin x, 30"},
                       {"\\sin 30^\\circ", "\\sin 30\\degree"}};
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
  const Pair different[] = {{"2\\sin 30^\\circ", "2\\sin(30)"},
                            {"\\sin 30", "\\frac12"},
                            {"\\arcsin 30^\\circ", "\\arcsin\\frac{\\pi}{6}"},
                            {"\\cos 80^\\circ", "\\cos 80"}};
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathAnswer, SetsAreTheirMembers) {
  const Pair same[] = {
      {"\\{1,1,2\\}", "\\{1,2\\}"},        {"\\{0.5, \\frac12\\}", "\\{\\frac12\\}"},
      {"\\{ \\}", "\\emptyset"},           {"\u2205", "\\varnothing"},
      {"(0,1]\\cup[1,3)", "(0,3)"},        {"\u2124", "\\mathbb Z"},
      {"x\u2208(0,1]\u222a(1,3)", "(0,3)"}};
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
  const Pair different[] = {{"\\{1,1,2\\}", "\\{1,2,3\\}"},
                            {"\\{1,2,3\\}", "\\{1,2\\}"},
                            {"(1,1,2)", "(1,2)"},
                            {"(0,1)\\cup(1,3)", "(0,3)"},
                            {"\\{\\}", "\\{0\\}"}};
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathAnswer, SumsOfVectorsHaveNoOrder) {
  const Pair same[] = {{"3\\,\\mathbf i+2\\,\\mathbf j", "2\\mathbf j+3\\mathbf i"},
                       {"3\\mathbf{i}+2\\mathbf{j}", "2\\mathbf{j} + 3\\mathbf{i}"},
                       {"3\\hat{i}-2\\hat{j}", "-2\\hat j+3\\hat i"},
                       {"\\vec{a}+2\\vec{b}", "2\\vec b+\\vec a"}};
  for (const auto& [a, b] : same) EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
  EXPECT_FALSE(equivalent("3\\hat{i}+2\\hat{j}", "3\\hat{j}+2\\hat{i}"));
  EXPECT_FALSE(equivalent("\\vec{a}", "\\hat{a}"));
}

TEST(MathAnswer, SignsOfUnicodeAreLatex) {
  const Pair same[] = {
      {"10\u207b\u00b2", "0.01"}, {"2\u00b9\u2070", "1024"}, {"2\u2153", "\\frac73"},
      {"3\u20444", "\\frac34"},   {"\uff15", "5"},           {"x\uff1d\uff11\uff12", "12"},
      {"50\uff05", "0.5"},        {"\u2205", "\\emptyset"},  {"\u211d", "\\mathbb{R}"},
      {"\u2220A", "\\angle A"},   {"x\u2081+1", "1+x_1"},    {"5\u200b", "5"},
      {"10~{\\rm cm}", "10"},     {"10{\\rm\\ km}^2", "10"}, {"\u221a12", "2\\sqrt3"}};
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
  EXPECT_FALSE(equivalent("10\u207b\u00b2", "10^2"));
  EXPECT_FALSE(equivalent("3{\\rm i}", "3"));
}

TEST(MathAnswer, UnknownFunctionsAreNoFactors) {
  const Pair different[] = {{"f(2)", "2f"},
                            {"f(x)", "fx"},
                            {"f(g(x))", "g(f(x))"},
                            {"f^{-1}(x)", "\\frac{x}{f}"},
                            {"g(x, 1)", "g(1, x)"}};
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
  const Pair same[] = {{"f(1+x)", "f(x+1)"},      {"2f(3) + 1", "1+2f(3)"}, {"f(x)^2", "f(x)f(x)"},
                       {"f(g(2x))", "f(g(x+x))"}, {"x(x-1)", "x^2-x"},      {"p(1-p)", "p-p^2"}};
  for (const auto& [a, b] : same) EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
}

TEST(MathAnswer, NamesOfDifferentThingsAreDifferentAnswers) {
  const Pair different[] = {{"y=3", "x=3"},
                            {"a = 3", "b = 3"},
                            {"\\theta=30^\\circ", "\\alpha=30^\\circ"},
                            {"(y,x)=(1,2)", "(x,y)=(1,2)"},
                            {"(a,b)=(1,2)", "(x,y)=(1,2)"},
                            {"f(1)=3", "f(2)=3"},
                            {"g(x)=x", "f(x)=x"},
                            {"a_1=3", "a_{2}=3"},
                            {"P(A)=\\frac12", "P(B)=\\frac12"},
                            {"\\angle A=30^\\circ", "\\angle B = 30"},
                            {"AB=5", "CD=5"},
                            {"y=1,5", "x=1.5"}};
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
  const Pair same[] = {{"n=3", "N=3"},
                       {"x_1=3", "x=3"},
                       {"y=x^2", "f(x)=x^2"},
                       {"AB=5", "BA=5"},
                       {"\\text{Area}=5", "A=5"},
                       {"f(n)=3", "f(x)=3"},
                       {"x=3", "3"},
                       {"P(X>2)=\\frac12", "P(X \\ge 3)=\\frac12"},
                       {"x=3", "x=3"}};
  for (const auto& [a, b] : same) EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
}

TEST(MathAnswer, CompositionsAreNoProducts) {
  EXPECT_FALSE(equivalent("f\\circ g", "g\\circ f"));
  EXPECT_FALSE(equivalent("f \\circ g", "fg"));
  EXPECT_TRUE(equivalent("f \\circ g", "f\\circ g"));
  EXPECT_TRUE(equivalent("90\\circ", "90"));
  EXPECT_TRUE(equivalent("30\\circ, 60\\circ", "30, 60"));
}

TEST(MathAnswer, WordsThatMakeAnotherQuantityStay) {
  for (const char* answer :
       {"5\\text{ or more}", "5\\text{ at least}", "5\\text{ and a half}", "5\\text{ to one}"})
    EXPECT_FALSE(equivalent(answer, "5")) << answer;
  EXPECT_TRUE(equivalent("5\\text{ or }6", "5, 6"));
  EXPECT_TRUE(equivalent("5\\text{ apples}", "5"));
  EXPECT_TRUE(equivalent("2\u00bd", "2.5"));
}

TEST(MathAnswer, WordsBehindNumbersThatAreNoUnitsCount) {
  const Pair different[] = {{"5\\text{ million}", "5"},
                            {"2\\text{ hundred}", "2"},
                            {"6\\text{ dozen}", "6"},
                            {"1\\text{ half}", "1"},
                            {"2\\text{ squared}", "2"},
                            {"5\\text{ factorial}", "5"},
                            {"2\\text{ pi}", "2"},
                            {"2\\text{ thousand dollars}", "2\\text{ dollars}"},
                            {"8:00\\text{ a.m.}", "8:00\\text{ p.m.}"},
                            {"10\\text{ AM}", "10\\text{ PM}"},
                            {"5\\text{ north}", "5\\text{ south}"},
                            {"5\\text{ north}", "5"},
                            {"5\\mathrm{~million}", "5"},
                            {"3\\text{ left}", "3\\text{ right}"},
                            {"3\\text{ units left}", "3\\text{ units right}"},
                            {"5\\text{ is not a solution}", "5"},
                            {"5\\text{ below zero}", "5"},
                            {"36\\text{ apples}", "36\\text{ pears}"},
                            {"36\\text{ apples}", "36 dollars"},
                            {"5 million", "5"}};
  for (const auto& [a, b] : different) {
    EXPECT_FALSE(equivalent(a, b)) << a << "   " << b;
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
  const Pair same[] = {{"5\\text{ million}", "5000000"},
                       {"3.5\\text{ million people}", "3{,}500{,}000"},
                       {"1,200\\text{ thousand}", "1.2\\text{ million}"},
                       {"5 million dollars", "\\$5{,}000{,}000"},
                       {"2\\text{ hundred thousand}", "2\\times10^5"},
                       {"6\\text{ dozen eggs}", "72"},
                       {"1\\text{ half}", "0.5"},
                       {"2\\text{ squared}", "4"},
                       {"5\\text{ factorial}", "120"},
                       {"2\\text{ pi}", "2\\pi"},
                       {"5\\text{ percent}", "0.05"},
                       {"5\\text{ percent}", "5\\%"},
                       {"9:30\\text{ a.m.}", "9:30"},
                       {"9:30\\text{ a.m.}", "9:30\\text{ AM}"},
                       {"5\\text{ north}", "5\\text{ north}"},
                       {"5\\text{ cm squared}", "5\\text{ cm}^2"},
                       {"5\\text{ apples}", "5 \\text{ red apples}"},
                       {"12\\text{ ways}", "12\\text{ possibilities}"},
                       {"(2\\text{ million}, 5)", "(2000000,5)"}};
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b;
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathAnswer, DecimalCommasStandInFormulasToo) {
  const Pair same[] = {{"y = 0,5x + 1,5", "y=0.5x+1.5"}, {"x \\ge 0,5", "x\\ge 0.5"},
                       {"0,5 < x < 1,5", "(0.5,1.5)"},   {"\\pm 0,5", "\\pm 0.5"},
                       {"\\sqrt{6,25}", "2.5"},          {"2^{0,5}", "\\sqrt{2}"},
                       {"1,5 and 2,5", "1.5, 2.5"},      {"+0,5", "\\frac12"},
                       {"\u20ac1.234,56", "1234.56"},    {"\\$3,50", "3.5"},
                       {"1.234.567", "1234567"}};
  for (const auto& [answer, truth] : same)
    EXPECT_TRUE(equivalent(answer, truth)) << answer << "   " << truth;
  const Pair different[] = {{"(0,5)", "0.5"},        {"\\{0,5\\}", "0.5"},
                            {"1.2", "1,2"},          {"1.234.567", "1.234"},
                            {"5,000", "5"},          {"1,2,3", "1.2, 3"},
                            {"0.123.456", "123456"}, {"\\gcd(2,5)", "\\gcd(2.5)"}};
  for (const auto& [answer, truth] : different)
    EXPECT_FALSE(equivalent(answer, truth)) << answer << "   " << truth;
}

TEST(MathAnswer, FindsTheLastBox) {
  EXPECT_EQ(last_boxed("a \\boxed{1} b \\boxed{\\frac{1}{2}} c"), "\\frac{1}{2}");
  EXPECT_EQ(last_boxed("\\fbox{7}"), "7");
  EXPECT_EQ(last_boxed("$\\boxed 5$"), "5");
  EXPECT_EQ(last_boxed("\\boxed{\\{1,2\\}}"), "\\{1,2\\}");
  EXPECT_EQ(last_boxed("\\boxed{1"), std::nullopt);
  EXPECT_EQ(last_boxed("\\boxed"), std::nullopt);
  EXPECT_EQ(last_boxed("none"), std::nullopt);
}

// What a model writes is anything; none of it may take long or crash.
TEST(MathAnswer, SurvivesOddTexts) {
  const std::string deep = std::string(900, '(') + "1" + std::string(900, ')');
  EXPECT_TRUE(equivalent(deep, deep));
  EXPECT_FALSE(equivalent(deep, "1"));
  const std::string powers = "((((x+y)^{60})^{60})^{60})^{60}";
  EXPECT_FALSE(equivalent(powers, "2"));
  std::string sets;
  for (int i = 0; i < 500; ++i) sets += "{1,";
  EXPECT_FALSE(equivalent(sets, "2"));
  for (const char* odd : {"\\",
                          "\\frac",
                          "\\frac{",
                          "}{",
                          "\\{",
                          "\\}",
                          "{",
                          "_",
                          "^",
                          "1_",
                          "x^",
                          "\\sqrt[",
                          "-9223372036854775808",
                          "\\sqrt{-1}",
                          "0^{-1}",
                          "\\text{",
                          "!",
                          ",",
                          ",,",
                          "=",
                          "a=",
                          "\\pm",
                          "\xff\xfe",
                          "\\begin{pmatrix}\\end{pmatrix}",
                          "20!!",
                          "--------1"}) {
    EXPECT_TRUE(equivalent(odd, odd)) << odd;
    EXPECT_FALSE(equivalent(odd, "12345")) << odd;
  }
}

TEST(MathAnswer, APercentageMayHaveADecimalComma) {
  EXPECT_TRUE(equivalent("12,5\\%", "12.5"));
  EXPECT_TRUE(equivalent("12,5\\%", "0.125"));
  EXPECT_FALSE(equivalent("12,5\\%", "125"));
}

}  // namespace
}  // namespace rl
