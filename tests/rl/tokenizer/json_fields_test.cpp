#include "rl/tokenizer/json_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using Json = nlohmann::json;
using runtime::ErrorCode;
using support::expect_failure;

TEST(JsonFields, NameWhatIsMissingOrOfAnotherType) {
  const Json object = {{"type", 3}, {"vocab", "a"}, {"content", nullptr}};
  expect_failure(json_type(object).status(), ErrorCode::kInvalidArgument,
                 {"type is number, should be a string"});
  expect_failure(json_array(object, "vocab").status(), ErrorCode::kInvalidArgument,
                 {"vocab is string, should be an array"});
  expect_failure(json_string(object, "content").status(), ErrorCode::kInvalidArgument,
                 {"content is missing"});
  expect_failure(json_integer(object, "id").status(), ErrorCode::kInvalidArgument,
                 {"id is missing, should be an integer"});
}

TEST(JsonFields, WhatIsNoObjectHasNoMembers) {
  for (const Json& value : {Json(), Json("type"), Json(7), Json::array({"type", "a"})}) {
    EXPECT_EQ(json_type(value).status().code(), ErrorCode::kInvalidArgument) << value;
    EXPECT_EQ(json_bool_or(value, "type", true).value_or(false), true) << value;
  }
}

TEST(JsonFields, IntegersAreWholeAndHave64Bits) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(json_integer({{"id", -5}}, "id").value_or(0), -5);
  EXPECT_EQ(json_integer({{"id", kMax}}, "id").value_or(0), kMax);
  expect_failure(json_integer({{"id", std::uint64_t{1} << 63}}, "id").status(),
                 ErrorCode::kInvalidArgument, {"id", "smaller"});
  for (const Json& wrong : {Json(1.0), Json("1"), Json(true)})
    EXPECT_EQ(json_integer({{"id", wrong}}, "id").status().code(), ErrorCode::kInvalidArgument)
        << wrong;
}

TEST(JsonFields, AnOptionalMemberOfAnotherTypeIsNotTakenForMissing) {
  const Json object = {{"lstrip", 1}, {"unk_token", false}, {"none", nullptr}};
  EXPECT_EQ(json_bool_or(object, "none", true).value_or(false), true);
  EXPECT_EQ(json_string_or(object, "none", "otherwise").value_or(""), "otherwise");
  expect_failure(json_bool_or(object, "lstrip", true).status(), ErrorCode::kInvalidArgument,
                 {"lstrip is number, should be true or false"});
  expect_failure(json_string_or(object, "unk_token", "otherwise").status(),
                 ErrorCode::kInvalidArgument, {"unk_token is boolean"});
}

}  // namespace
}  // namespace rl
