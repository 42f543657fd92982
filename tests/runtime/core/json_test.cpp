#include "runtime/core/json.h"

#include <gtest/gtest.h>

#include <string>

namespace runtime {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(Json, IsParsedWithinADepth) {
  EXPECT_TRUE(parse_json(nested(kJsonDepthMax)).is_array());
  EXPECT_TRUE(parse_json(nested(kJsonDepthMax + 1)).is_discarded());
  EXPECT_TRUE(parse_json(nested(1'000'000)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(1'000'000, '{')).is_discarded());
  EXPECT_TRUE(parse_json("[1").is_discarded());
  EXPECT_TRUE(parse_json(std::string_view("[1]\0[", 5)).is_discarded());
  EXPECT_EQ(parse_json("[1, {\"a\": 2}]").at(1).at("a"), 2);
}

TEST(Json, BracketsInTextsDoNotNest) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("\"" + brackets + "\""), brackets);
  EXPECT_EQ(parse_json("[\"\\\"" + brackets + "\"]").at(0), "\"" + brackets);
  EXPECT_TRUE(nests_deeper("[[\"]]\", [[1]]]]", 3));
  EXPECT_FALSE(nests_deeper("[[1], [2], [3]]", 2));
}

TEST(Json, AMemberThatIsNullIsAsGoodAsMissing) {
  const auto object = nlohmann::ordered_json::parse(R"({"a": 0, "b": null})");
  ASSERT_NE(json_member(object, "a"), nullptr);
  EXPECT_EQ(json_member(object, "a"), &object.at("a"));
  EXPECT_EQ(json_member(object, "b"), nullptr);
  EXPECT_EQ(json_member(object, "c"), nullptr);
  EXPECT_EQ(json_member(nlohmann::json::parse("[1]"), "a"), nullptr);
}

}  // namespace
}  // namespace runtime
