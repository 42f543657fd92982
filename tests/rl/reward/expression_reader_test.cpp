// The grammar of formulas, by an algebra that writes down what is asked of it.
#include "rl/reward/expression_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rl {
namespace {

struct WrittenValue {
  std::string text;
  std::optional<Rational> constant = {};
};

// Each operation in brackets.
class WritingAlgebra {
 public:
  using Value = WrittenValue;
  using Result = std::optional<WrittenValue>;

  Result rational(std::int64_t numerator, std::int64_t denominator) const {
    std::string text = std::to_string(numerator);
    if (denominator != 1) text += "/" + std::to_string(denominator);
    return Value{text, Rational{numerator, denominator}};
  }
  Result negate(const Value& a) const {
    Value negated{"(-" + a.text + ")"};
    if (a.constant) negated.constant = Rational{-a.constant->numerator, a.constant->denominator};
    return negated;
  }
  Result add(const Value& a, const Value& b) const { return joined(a, "+", b); }
  Result multiply(const Value& a, const Value& b) const { return joined(a, "*", b); }
  Result divide(const Value& a, const Value& b) const {
    Result quotient = joined(a, "/", b);
    if (a.constant && b.constant && a.constant->denominator == 1 && b.constant->denominator == 1)
      quotient->constant = Rational{a.constant->numerator, b.constant->numerator};
    return quotient;
  }
  Result raise(const Value& base, const Value& exponent) const {
    return exponent.text == "1" ? base : joined(base, "^", exponent);
  }
  Result root(const Value& a, std::int64_t degree) const {
    return Value{"root" + std::to_string(degree) + "(" + a.text + ")"};
  }
  Result function(const std::string& name, const Result& base, const Value& a) const {
    return Value{name + (base ? "_" + base->text : "") + "(" + a.text + ")"};
  }
  Result absolute(const Value& a) const { return Value{"abs(" + a.text + ")"}; }
  Result rounded(const Value& a, bool up) const {
    return Value{(up ? "ceil(" : "floor(") + a.text + ")"};
  }
  Result binomial(const Value& a, const Value& b) const {
    return Value{"choose(" + a.text + "," + b.text + ")"};
  }
  Result symbol(const std::string& name) const { return Value{name}; }
  std::string text_of(const Value& a) const { return a.text; }
  std::optional<Rational> constant_of(const Value& a) const { return a.constant; }

 private:
  static Result joined(const Value& a, const char* sign, const Value& b) {
    return Value{"(" + a.text + sign + b.text + ")"};
  }
};

std::string formula(const std::string& text) {
  WritingAlgebra algebra;
  const auto value = ExpressionReader<WritingAlgebra>(text, algebra).read();
  return value ? value->text : "none";
}

TEST(ExpressionReader, ProductsBindMoreThanSumsAndPowersMoreThanBoth) {
  EXPECT_EQ(formula("1+2*3-4"), "((1+(2*3))+(-4))");
  EXPECT_EQ(formula("-x^2"), "(-(x^2))");
  EXPECT_EQ(formula("2x^3"), "(2*(x^3))");
  EXPECT_EQ(formula("6/2x"), "((6/2)*x)") << "from the left";
  EXPECT_EQ(formula("(1+2)3"), "((1+2)*3)");
  EXPECT_EQ(formula("2 \\cdot -3"), "(2*(-3))");
  EXPECT_EQ(formula("x**2"), "(x^2)");
  EXPECT_EQ(formula("a--b"), "(a+(-(-b)))");
}

TEST(ExpressionReader, NeighboursAreAProductUnlessBothAreNumbers) {
  EXPECT_EQ(formula("2x y"), "((2*x)*y)");
  EXPECT_EQ(formula("xy"), "(x*y)");
  EXPECT_EQ(formula("2 3"), "none");
  EXPECT_EQ(formula("x 3"), "none");
  EXPECT_EQ(formula("2\\pi"), "(2*pi)");
  EXPECT_EQ(formula("word"), "none") << "of more than three letters it is no product";
}

TEST(ExpressionReader, FractionsAndMixedNumbers) {
  EXPECT_EQ(formula("\\frac12"), "(1/2)");
  EXPECT_EQ(formula("\\frac{1}{x+1}"), "(1/(x+1))");
  EXPECT_EQ(formula("1\\frac{1}{2}"), "(1+(1/2))");
  EXPECT_EQ(formula("1\\frac{3}{2}"), "(1*(3/2))") << "no proper fraction";
  EXPECT_EQ(formula("x\\frac12"), "(x*(1/2))");
  EXPECT_EQ(formula("\\frac{1}"), "none");
}

TEST(ExpressionReader, ExponentsAreDigitsInARowArgumentsOneDigit) {
  EXPECT_EQ(formula("2^10"), "(2^10)");
  EXPECT_EQ(formula("2^{10}x"), "((2^10)*x)");
  EXPECT_EQ(formula("2^-1"), "(2^(-1))");
  EXPECT_EQ(formula("\\sqrt23"), "none") << "the root of 2 next to a 3";
  EXPECT_EQ(formula("\\sqrt2x"), "(root2(2)*x)");
  EXPECT_EQ(formula("\\sqrt[3]{x}"), "root3(x)");
  EXPECT_EQ(formula("\\sqrt[1]{x}"), "none");
}

TEST(ExpressionReader, NumbersAreDecimalsRepeatingOnesAndPowersOfTen) {
  EXPECT_EQ(formula("0.25"), "25/100");
  EXPECT_EQ(formula(".5"), "5/10");
  EXPECT_EQ(formula("0.1\\overline{6}"), "15/90");
  EXPECT_EQ(formula("2e3"), "(2*(10^3))");
  EXPECT_EQ(formula("2e-05"), "(2*(10^-5))");
  EXPECT_EQ(formula("2e-5"), "((2*e)+(-5))") << "Euler's number may be meant";
  EXPECT_EQ(formula("4e2x"), "(((4*e)*2)*x)") << "a product";
  EXPECT_EQ(formula("99999999999999999999"), "none");
  EXPECT_EQ(formula("."), "none");
}

TEST(ExpressionReader, FunctionsTakeTheFactorsBehindThem) {
  EXPECT_EQ(formula("\\sin 2x"), "sin((2*x))");
  EXPECT_EQ(formula("\\sin x \\cos y"), "(sin(x)*cos(y))");
  EXPECT_EQ(formula("sinx"), "sin(x)");
  EXPECT_EQ(formula("\\sin x + 1"), "(sin(x)+1)");
  EXPECT_EQ(formula("\\cos x(1+y)"), "(cos(x)*(1+y))");
  EXPECT_EQ(formula("\\sin(x)^2"), "(sin(x)^2)");
  EXPECT_EQ(formula("\\sin{x}^2"), "sin((x^2))");
  EXPECT_EQ(formula("\\sin^2 x"), "(sin(x)^2)");
  EXPECT_EQ(formula("\\sin^{-1} x"), "arcsin(x)");
  EXPECT_EQ(formula("\\log_2 8"), "log_2(8)");
  EXPECT_EQ(formula("\\log_{10} x"), "log_10(x)");
  EXPECT_EQ(formula("\\sin"), "none");
}

TEST(ExpressionReader, DegreesCountWhereAnAngleIsTaken) {
  EXPECT_EQ(formula("30\\degree"), "30");
  EXPECT_EQ(formula("\\sin 30\\degree"), "sin(((30*pi)/180))");
  EXPECT_EQ(formula("\\ln 30\\degree"), "ln(30)");
}

TEST(ExpressionReader, BarsFloorsBinomialsAndFactorials) {
  EXPECT_EQ(formula("2|x-1|"), "(2*abs((x+(-1))))");
  EXPECT_EQ(formula("\\lfloor x\\rfloor"), "floor(x)");
  EXPECT_EQ(formula("\\lceil x/2\\rceil + 1"), "(ceil((x/2))+1)");
  EXPECT_EQ(formula("\\binom{5}{2}"), "choose(5,2)");
  EXPECT_EQ(formula("5!"), "120");
  EXPECT_EQ(formula("21!"), "none");
  EXPECT_EQ(formula("x!"), "none");
}

TEST(ExpressionReader, NamesHaveSubscriptsMarksAndArguments) {
  EXPECT_EQ(formula("x_1+x_{12}"), "(x_1+x_12)");
  EXPECT_EQ(formula("1011_2"), "1011_2") << "a number of another base is a name";
  EXPECT_EQ(formula("\\hat{i}"), "hat(i)");
  EXPECT_EQ(formula("\\alpha\\unheard"), "none");
  EXPECT_NE(formula("f(x)"), "(f*x)");
  EXPECT_EQ(formula("h(x)"), "(h*x)");
}

TEST(ExpressionReader, WhatIsNotReadToItsEndIsNoFormula) {
  for (const char* text : {"", " ", "1+", "(1", "1)", "{1", "|x", "1,2", "x=1", "\\frac",
                           "2 \\cdot", "\\lfloor x", "x^", "x_"})
    EXPECT_EQ(formula(text), "none") << text;
}

TEST(ExpressionReader, NestsSoDeepOnly) {
  const auto nested = [](int depth, const std::string& open, const std::string& close) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += "1";
    for (int i = 0; i < depth; ++i) text += close;
    return formula(text);
  };
  EXPECT_EQ(nested(8, "(", ")"), "1");
  EXPECT_EQ(nested(8, "{", "}"), "1");
  for (const int depth : {1'000, 100'000}) {
    EXPECT_EQ(nested(depth, "(", ")"), "none");
    EXPECT_EQ(nested(depth, "-", ""), "none");
    EXPECT_EQ(nested(depth, "\\sin", ""), "none");
  }
}

TEST(MayBeExpression, WordsAreNone) {
  EXPECT_TRUE(may_be_expression("x"));
  EXPECT_TRUE(may_be_expression("pi"));
  EXPECT_TRUE(may_be_expression("2x"));
  EXPECT_FALSE(may_be_expression("no"));
  EXPECT_FALSE(may_be_expression(""));
  EXPECT_FALSE(may_be_expression(std::string(kExpressionBytesMax + 1, '1')));
}

}  // namespace
}  // namespace rl
