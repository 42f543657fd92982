// % formats by themselves. The expected values are those of Python 3.11.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/template/builtins.h"
#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using testing::template_failure;

class PercentFormatTest : public ::testing::Test {
 protected:
  std::string formatted(const std::string& format, const ValueList& values, bool all_used = true) {
    std::string text;
    const runtime::Status failure =
        template_failure([&] { text = format_percent(evaluator_, format, values, all_used); });
    return failure.ok() ? text : failure.message();
  }
  std::string of(const std::string& format, const ordered_json& value) {
    return formatted(format, {TemplateValue::from_json(value)});
  }

  struct Case {
    std::string format;
    ordered_json value;
    std::string expected;
  };
  void expect(const std::vector<Case>& cases) {
    for (const Case& item : cases)
      EXPECT_EQ(of(item.format, item.value), item.expected) << item.format << " of " << item.value;
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  TemplateEvaluator evaluator_{ordered_json::object(), {}};
};

TEST_F(PercentFormatTest, IntegersHaveThreeBases) {
  expect({{"%d", 255, "255"},
          {"%i", 3.9, "3"},
          {"%u", -5, "-5"},
          {"%x", 255, "ff"},
          {"%X", 255, "FF"},
          {"%o", 8, "10"},
          {"%x", -255, "-ff"},
          {"%x", true, "1"},
          {"%o", 0, "0"},
          {"%x", std::numeric_limits<std::int64_t>::min(), "-8000000000000000"},
          {"%x", std::numeric_limits<std::int64_t>::max(), "7fffffffffffffff"},
          {"%ld", 5, "5"},
          {"%Lx", 255, "ff"}});
}

TEST_F(PercentFormatTest, TheAlternateFormHasAPrefix) {
  expect({{"%#x", 255, "0xff"},
          {"%#X", 255, "0XFF"},
          {"%#o", 8, "0o10"},
          {"%#o", 0, "0o0"},
          {"%#d", 8, "8"},
          {"%#x", -255, "-0xff"},
          {"%#08x", -255, "-0x000ff"},
          {"%#-8x|", 255, "0xff    |"},
          {"%#+10x|", 255, "     +0xff|"},
          {"%#+010x|", 255, "+0x00000ff|"},
          {"%#.4x", 15, "0x000f"},
          {"%#10.4x|", -15, "   -0x000f|"},
          {"%#g", 1.0, "1.00000"},
          {"%#.0f", 1.0, "1."},
          {"%#.0e", 1.0, "1.e+00"},
          {"%#G", 1e10, "1.00000E+10"},
          {"%#.3g", kInfinity, "inf"}});
}

TEST_F(PercentFormatTest, SignsZerosAndWidths) {
  expect({{"%08x", -255, "-00000ff"},
          {"%-8x|", 255, "ff      |"},
          {"%+x", 255, "+ff"},
          {"% x", 255, " ff"},
          {"%.4x", 15, "000f"},
          {"%08.4x|", 15, "0000000f|"},
          {"%-05d|", 3, "3    |"},
          {"%-+05d|", 3, "+3   |"},
          {"%+05d|", 3, "+0003|"},
          {"% 05d|", 3, " 0003|"},
          {"%+ d", 3, "+3"},
          {"%05.3d|", 5, "00005|"},
          {"%.d", 0, "0"},
          {"%05s|", "a", "    a|"},
          {"%+s", "a", "a"}});
}

TEST_F(PercentFormatTest, FloatsInBothCases) {
  const double nan = std::nan("");
  expect({{"%E", 12345.678, "1.234568E+04"},
          {"%G", 1e-10, "1E-10"},
          {"%G", 1e20, "1E+20"},
          {"%g", 1e20, "1e+20"},
          {"%.0G", 1234.0, "1E+03"},
          {"%e", true, "1.000000e+00"},
          {"%.f", 1.5, "2"},
          {"%010.3E|", -12.5, "-1.250E+01|"},
          {"%-12.3E|", -12.5, "-1.250E+01  |"},
          {"%F", kInfinity, "INF"},
          {"%f", -kInfinity, "-inf"},
          {"%06F", kInfinity, "000INF"},
          {"%+f", kInfinity, "+inf"},
          {"%F", nan, "NAN"},
          {"%f", -nan, "nan"},
          {"%+06E", nan, "+00NAN"}});
}

TEST_F(PercentFormatTest, Characters) {
  expect({{"%5c|", "a", "    a|"},
          {"%-5c|", "a", "a    |"},
          {"%05c|", "a", "    a|"},
          {"%5.3c|", "a", "    a|"},
          {"%.0c", "\u20ac", "\u20ac"},
          {"%c", 8364, "\u20ac"},
          {"%c", true, "\x01"},
          {"%c", 1.0, "TypeError: %c requires int or char"},
          {"%c", "ab", "TypeError: %c requires int or char"},
          {"%c", "", "TypeError: %c requires int or char"},
          {"%c", ordered_json::array({1}), "TypeError: %c requires int or char"},
          {"%c", -1, "OverflowError: %c arg not in range(0x110000)"},
          {"%c", 0x110000, "OverflowError: %c arg not in range(0x110000)"},
          {"%c", 0xd800, "UnicodeEncodeError: surrogates not allowed"}});
}

TEST_F(PercentFormatTest, WhatIsNotAsciiIsEscapedOnRequest) {
  expect({{"%a", "\u00e9\u20ac\U0001f600\"", R"('\xe9\u20ac\U0001f600"')"},
          {"%.3a", "\u00e9", R"('\x)"},
          {"%5a|", "a", "  'a'|"},
          {"%r", "\u00e9", "'\u00e9'"}});
}

TEST_F(PercentFormatTest, IntegersBeyond64Bits) {
  const TemplateValue large = TemplateValue::integer("18446744073709551616");   // 2 ** 64
  const TemplateValue low = TemplateValue::integer("-1180591620717411303423");  // 1 - 2 ** 70
  EXPECT_EQ(formatted("%x", {large}), "10000000000000000");
  EXPECT_EQ(formatted("%o", {large}), "2000000000000000000000");
  EXPECT_EQ(formatted("%#030x", {large}), "0x0000000000010000000000000000");
  EXPECT_EQ(formatted("%X", {low}), "-3FFFFFFFFFFFFFFFFF");
  EXPECT_EQ(formatted("%d", {low}), "-1180591620717411303423");
  EXPECT_EQ(formatted("%f", {large}), "18446744073709551616.000000");
  EXPECT_EQ(formatted("%c", {large}), "OverflowError: %c arg not in range(0x110000)");
  const TemplateValue huge = TemplateValue::integer("1" + std::string(400, '0'));
  EXPECT_EQ(formatted("%f", {huge}), "OverflowError: int too large to convert to float");
  EXPECT_EQ(formatted("%x", {TemplateValue::integer(std::string(4301, '9'))}),
            "% format: an integer of more than 4300 digits");
}

TEST_F(PercentFormatTest, WidthsAndPrecisionsAmongTheValues) {
  const auto number = [](std::int64_t value) { return TemplateValue(value); };
  EXPECT_EQ(formatted("%*d|", {number(5), number(1)}), "    1|");
  EXPECT_EQ(formatted("%*d|", {number(-5), number(1)}), "1    |");
  EXPECT_EQ(formatted("%.*f", {number(2), TemplateValue(1.5)}), "1.50");
  EXPECT_EQ(formatted("%.*f", {number(-2), TemplateValue(1.5)}), "2");
  EXPECT_EQ(formatted("%*.*f|", {number(8), number(2), TemplateValue(3.14159)}), "    3.14|");
  EXPECT_EQ(formatted("%*d", {TemplateValue(1.0), number(1)}), "TypeError: * wants int");
  EXPECT_EQ(formatted("%*d", {number(1)}), "TypeError: not enough arguments for format string");
  EXPECT_EQ(formatted("%*d", {number(std::numeric_limits<std::int64_t>::min()), number(1)}),
            "% format: a width or precision of more than a million");
}

TEST_F(PercentFormatTest, WrongTypesAndLettersAreFailuresInPythonsWords) {
  expect({{"%x", 1.5, "TypeError: %x format: an integer is required, not float"},
          {"%X", "a", "TypeError: %X format: an integer is required, not str"},
          {"%o", nullptr, "TypeError: %o format: an integer is required, not NoneType"},
          {"%d", "a", "TypeError: %d format: a real number is required, not str"},
          {"%i", "a", "TypeError: %i format: a real number is required, not str"},
          {"%u", "a", "TypeError: %u format: a real number is required, not str"},
          {"%E", "a", "TypeError: must be real number, not str"},
          {"%lld", 5, "ValueError: unsupported format character 'l' (0x6c) at index 2"},
          {"\u00e9%y", 1, "ValueError: unsupported format character 'y' (0x79) at index 2"},
          {"%\u00e9", 1, "ValueError: unsupported format character '?' (0xe9) at index 1"},
          {"%", 1, "ValueError: incomplete format"},
          {"%5.", 1, "ValueError: incomplete format"},
          {"%l", 1, "ValueError: incomplete format"},
          {"%*", 1, "ValueError: incomplete format"}});
  const TemplateValue missing = TemplateValue::undefined("'x' is undefined");
  for (const char* format : {"%x", "%c", "%E", "%d"})
    EXPECT_EQ(formatted(format, {missing}), "UndefinedError: 'x' is undefined") << format;
}

TEST_F(PercentFormatTest, HasLimits) {
  const TemplateValue one(std::int64_t{1});
  EXPECT_EQ(formatted("%5d|%-5d|", {one, one}), "    1|1    |");
  EXPECT_EQ(formatted("%1000001d", {one}), "% format: a width or precision of more than a million");
  EXPECT_EQ(formatted("%.101f", {one}), "% format: more than 100 digits of a fraction");
  EXPECT_EQ(formatted("%.100f", {one}), "1." + std::string(100, '0'));
  EXPECT_EQ(formatted("%d", {TemplateValue(std::nan(""))}),
            "ValueError: cannot convert float NaN to integer");
  EXPECT_EQ(formatted("%d", {TemplateValue(1e300)}), "OverflowError: integer beyond 64 bits");
}

TEST_F(PercentFormatTest, ValuesThatAreLeftOverAreAFailureWhereAllAreToBeUsed) {
  const TemplateValue one(std::int64_t{1});
  EXPECT_EQ(formatted("x", {one}),
            "TypeError: not all arguments converted during string formatting");
  EXPECT_EQ(formatted("x", {one}, /*all_used=*/false), "x");
  EXPECT_EQ(formatted("%d %d", {one}), "TypeError: not enough arguments for format string");
  EXPECT_EQ(formatted("100%%", {}), "100%");
}

}  // namespace
}  // namespace rl
