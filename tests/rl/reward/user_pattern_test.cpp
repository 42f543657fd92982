#include "rl/reward/user_pattern.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

std::optional<std::string> found_last(const std::string& pattern, std::string_view text) {
  const auto compiled = UserPattern::compile(pattern);
  EXPECT_TRUE(compiled.ok()) << compiled.status().to_string();
  const auto found = compiled->find_last(text);
  EXPECT_TRUE(found.ok()) << found.status().to_string();
  return *found;
}

TEST(UserPattern, TheLastMatchCountsByItsFirstGroup) {
  EXPECT_EQ(found_last("[0-9]+", "12 and 345, no more"), "345");
  EXPECT_EQ(found_last("answer: ([a-z]+)([0-9]*)", "answer: a1 answer: b2"), "b");
  EXPECT_EQ(found_last("(x)|y", "x y"), "y") << "its group took no part in the last match";
  EXPECT_EQ(found_last("z", "x y"), std::nullopt);
  EXPECT_EQ(found_last("x(.*)y", "x1\n2y"), "1\n2") << "a dot matches line ends";
}

TEST(UserPattern, EmptyMatchesDoNotHang) {
  EXPECT_EQ(found_last("x*", "ax"), "") << "at the end, behind the x";
  EXPECT_EQ(found_last("", "\u00e9"), "");
  EXPECT_EQ(found_last("", ""), "");
  EXPECT_EQ(found_last("a\\Kb|c\\K", "abc"), "");
}

TEST(UserPattern, TextMayBeNoUtf8) {
  EXPECT_EQ(found_last("[0-9]", "\xff\xfe 7 \xc3"), "7");
  EXPECT_EQ(found_last("^.$", "\u00e9"), "\u00e9") << "one character";
}

TEST(UserPattern, KnowsWhetherItHasAGroup) {
  EXPECT_TRUE(UserPattern::compile("a(b)")->has_group());
  EXPECT_FALSE(UserPattern::compile("a(?:b)")->has_group());
  EXPECT_FALSE(UserPattern::compile("a\\(b")->has_group());
}

TEST(UserPattern, SaysWhereItIsMalformedAndWhereItGivesUp) {
  support::expect_failure(UserPattern::compile("ab(c").status(),
                          runtime::ErrorCode::kInvalidArgument, {"'ab(c'", "malformed at 4"});
  const auto endless = UserPattern::compile("^(a+)+$");
  ASSERT_TRUE(endless.ok());
  EXPECT_EQ(endless->find_last(std::string(64, 'a').append("b")).status().code(),
            runtime::ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace rl
