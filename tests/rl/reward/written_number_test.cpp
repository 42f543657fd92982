#include "rl/reward/written_number.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

WrittenNumber number(std::string_view written) {
  const auto parsed = WrittenNumber::parse(written);
  EXPECT_TRUE(parsed.has_value()) << written;
  return parsed.value_or(WrittenNumber());
}

TEST(WrittenNumber, IsItsValueHoweverItIsWritten) {
  for (const char* written : {"1500", "1500.0", "+1500", "001500", "1.5e3", "15E+02", "15000e-1"})
    EXPECT_EQ(number(written), number("1500")) << written;
  EXPECT_EQ(number("-0.0"), number("0"));
  EXPECT_FALSE(number("9007199254740993") == number("9007199254740992"));
  EXPECT_FALSE(number("-5") == number("5"));
  EXPECT_TRUE(number("1.50e1").is_integer());
  EXPECT_FALSE(number("15e-1").is_integer());
}

TEST(WrittenNumber, IsWrittenWithAllDigitsOfAnInteger) {
  EXPECT_EQ(number("-9007199254740993.0").text(), "-9007199254740993");
  EXPECT_EQ(number("1e16").text(), "10000000000000000");
  EXPECT_EQ(number("12e99").text(), "12e99");
  EXPECT_EQ(number("1e-05").text(), "1e-05");
  EXPECT_EQ(number("1000.50").text(), "1000.5");
  EXPECT_EQ(number("0").text(), "0");
}

TEST(WrittenNumber, IsAFormulaWithoutRounding) {
  EXPECT_EQ(number("-1e-05").latex(), "-1 \\cdot 10^{-5}");
  EXPECT_EQ(number("1.50e18").latex(), "15 \\cdot 10^{17}");
  EXPECT_EQ(number("0").latex(), "0 \\cdot 10^{0}");
}

TEST(WrittenNumber, ItsValueMayBeBeyondDoublePrecision) {
  EXPECT_EQ(number("-12.5").value(), -12.5);
  EXPECT_TRUE(std::isinf(number("-1e999").value()));
  EXPECT_LT(number("-1e999").value(), 0);
  EXPECT_EQ(number("1e-999").value(), 0);
}

TEST(WrittenNumber, OtherTextsAreNone) {
  for (const char* written : {"", "-", ".", "e5", "1e", "1e+", "1e+-5", "1e99999999999999999999",
                              "1,000", "1.2.3", "5x", "--5", "inf", "0x10"})
    EXPECT_FALSE(WrittenNumber::parse(written).has_value()) << written;
}

}  // namespace
}  // namespace rl
