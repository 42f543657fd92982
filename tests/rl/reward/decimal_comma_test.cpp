#include "rl/reward/decimal_comma.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(DecimalComma, IsOneWhereItCanBeNothingElse) {
  EXPECT_EQ(with_decimal_point("3{,}5", Commas::kPlain), "3.5");
  EXPECT_EQ(with_decimal_point("-1.234,56", Commas::kPlain), "-1234.56");
  EXPECT_EQ(with_decimal_point("$0{,}123$", Commas::kPlain), "0.123$");
  EXPECT_FALSE(with_decimal_point("3,5", Commas::kPlain)) << "or a list";
  EXPECT_EQ(with_decimal_point("3,5", Commas::kAll), "3.5");
  EXPECT_EQ(with_decimal_point("2,5\\text{ m}", Commas::kAll), "2.5\\text{ m}");
  EXPECT_EQ(with_decimal_point("\xE2\x88\x92"
                               "3,5",
                               Commas::kAll),
            "-3.5")
      << "U+2212";
  EXPECT_EQ(with_decimal_point("\\(3,5\\)", Commas::kAll), "3.5\\)");
  EXPECT_EQ(with_decimal_point("x = 3,5", Commas::kAll), "3.5");
}

TEST(DecimalComma, IsNoneInThousandsAndLists) {
  for (const char* text : {"1,234", "1{,}234", "1,5,2", "3, 5", "(3,5)", "x,5", "3,", "", "-",
                           "3.5", "1,5;2", "1,2.5"})
    EXPECT_FALSE(with_decimal_point(text, Commas::kAll)) << text;
}

TEST(DecimalComma, MembersOfListsHaveThem) {
  EXPECT_EQ(with_decimal_point("1 234,5", Commas::kPlain), "1234.5");
  EXPECT_EQ(with_decimal_point("1\\,234{,}5", Commas::kPlain), "1234.5");
  EXPECT_EQ(with_decimal_points_in_list("(0{,}5, 1{,}5)"), "(0.5, 1.5)");
  EXPECT_EQ(with_decimal_points_in_list("(0,5; 1,25)"), "(0.5; 1.25)");
  for (const char* text : {"(0,5, 1,5)", "(1,2);(3,4)", "1{,}234", "5; 1,250", "0,5\\;m", ""})
    EXPECT_FALSE(with_decimal_points_in_list(text)) << text;
}

}  // namespace
}  // namespace rl
