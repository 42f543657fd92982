#include "rl/data/json_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using support::expect_failure;

TEST(JsonText, AValueComesBackFromItsText) {
  for (const char* text : {"null", "true", "[]", "{}", R"(["5", null])", R"({"target": [1.5, ""]})",
                           "18446744073709551615"}) {
    const ordered_json value = ordered_json::parse(text);
    EXPECT_EQ(text_as_json(json_as_text(value), /*is_json=*/true), value) << text;
  }
  for (const char* text : {"", "null", "[5]", "5", "a \"b\""})
    EXPECT_EQ(text_as_json(json_as_text(ordered_json(text)), /*is_json=*/false),
              ordered_json(text));
}

// Ground truths that begin with a brace are tried as JSON.
TEST(JsonText, ATextThatIsNoJsonStaysOne) {
  EXPECT_EQ(text_as_json("{x} + {y}", /*is_json=*/true), "{x} + {y}");
}

TEST(JsonText, DepthIsLimited) {
  const auto nested = [](std::size_t depth) {
    return parse_json_text(std::string(depth, '[') + std::string(depth, ']'), "f:1").status();
  };
  EXPECT_TRUE(nested(100).ok()) << nested(100).to_string();
  expect_failure(nested(101), ErrorCode::kInvalidArgument, {"f:1: nested deeper than 100"});
  EXPECT_TRUE(parse_json_text("\"" + std::string(200, '[') + "\"", "f:1").ok())
      << "brackets in a text do not nest";
}

// A parser of C strings would take the text before it for all of it.
TEST(JsonText, AZeroByteIsNoEnd) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"{}\0"sv, "{}\0{"sv, "\0"sv})
    expect_failure(parse_json_text(text, "f:1").status(), ErrorCode::kInvalidArgument,
                   {"f:1: not JSON: it has a NUL byte"});
}

TEST(JsonText, AnExcerptIsALineOfUtf8) {
  EXPECT_EQ(excerpt("say \"no\\yes\"", 80), "say \"no\\yes\"");
  EXPECT_EQ(excerpt("a\nb\tc\x1b[0m", 80), "a\\nb\\tc\\u001b[0m");
  EXPECT_EQ(excerpt("a\xFFz", 80), "a\xEF\xBF\xBDz");
  EXPECT_EQ(excerpt("caf\xC3\xA9", 5), "caf\xC3\xA9");
  EXPECT_EQ(excerpt("caf\xC3\xA9", 4), "caf\xEF\xBF\xBD") << "cut within a character";
  EXPECT_EQ(excerpt("abc", 0), "");
}

TEST(JsonText, ALongListOfKeysIsCut) {
  ordered_json object = ordered_json::object();
  EXPECT_EQ(list_json_keys(object), "no keys");
  for (int i = 0; i < 1000; ++i) object["column_" + std::to_string(i)] = i;
  const std::string keys = list_json_keys(object);
  EXPECT_TRUE(keys.starts_with("'column_0', 'column_1', ")) << keys;
  EXPECT_TRUE(keys.ends_with("', ...")) << keys;
  EXPECT_LT(keys.size(), 300u);
}

}  // namespace
}  // namespace rl
