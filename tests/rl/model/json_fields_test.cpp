#include "rl/model/json_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;
using support::expect_failure;

TEST(JsonFields, WhatIsAbsentOrNullIsTheDefault) {
  const json object = {{"size", nullptr}, {"name", nullptr}};
  JsonFields fields(object, "config.json");
  EXPECT_EQ(fields.integer("size", 7, 0, 9), 7);
  EXPECT_EQ(fields.number("rate", 0.5, 0.0), 0.5);
  EXPECT_TRUE(fields.boolean("flag", true));
  EXPECT_EQ(fields.text("name", "plain"), "plain");
  EXPECT_TRUE(fields.token_ids("ids").empty());
  EXPECT_TRUE(fields.texts("words").empty());
  EXPECT_EQ(fields.object("inner"), json::object());
  fields.only("name", "other", "other is");
  EXPECT_FALSE(fields.has("size"));
  EXPECT_TRUE(fields.is_null("size"));
  EXPECT_FALSE(fields.is_null("rate"));
  EXPECT_TRUE(fields.status().ok()) << fields.status().to_string();
}

TEST(JsonFields, AKeyThatMustBeThereIsMissedByName) {
  const json object = {{"size", nullptr}};
  JsonFields fields(object, "config.json");
  fields.integer("size", 1, 9);
  expect_failure(fields.status(), ErrorCode::kInvalidArgument,
                 {"config.json: size is missing, expected an integer from 1 to 9"});
}

TEST(JsonFields, IntegersAreWholeAndWithinTheirBounds) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto read = [](const json& value, std::int64_t most) {
    const json object = {{"n", value}};
    JsonFields fields(object, "config.json");
    const std::int64_t found = fields.integer("n", 0, 1, most);
    return fields.status().ok() ? found : -1;
  };
  EXPECT_EQ(read(1, 9), 1);
  EXPECT_EQ(read(9, 9), 9);
  EXPECT_EQ(read(0, 9), -1);
  EXPECT_EQ(read(10, 9), -1);
  EXPECT_EQ(read(3.0, 9), -1) << "a float";
  EXPECT_EQ(read("3", 9), -1);
  EXPECT_EQ(read(true, 9), -1);
  EXPECT_EQ(read(kMost, kMost), kMost);
  EXPECT_EQ(read(static_cast<std::uint64_t>(kMost) + 1, kMost), -1) << "not a negative one";
}

TEST(JsonFields, NumbersAreFiniteAndAtLeastTheLeast) {
  const json object = {{"whole", 3}, {"least", 0.5}, {"below", 0.25}, {"text", "1"}};
  JsonFields fields(object, "config.json");
  EXPECT_EQ(fields.number("whole", 1.0, 0.5), 3.0);
  EXPECT_EQ(fields.number("least", 1.0, 0.5), 0.5);
  EXPECT_TRUE(fields.status().ok()) << fields.status().to_string();
  EXPECT_EQ(fields.number("below", 1.0, 0.5), 1.0);
  expect_failure(fields.status(), ErrorCode::kInvalidArgument, {"below is 0.25", "at least 0.5"});
  JsonFields again(object, "config.json");
  again.number("text", 1.0, 0.5);
  expect_failure(again.status(), ErrorCode::kInvalidArgument, {"text is \"1\""});
}

TEST(JsonFields, TokenIdsAreOneOrAListAndMinusOneIsNone) {
  const auto read = [](const json& value) {
    const json object = {{"eos_token_id", value}};
    JsonFields fields(object, "config.json");
    std::vector<std::int32_t> ids = fields.token_ids("eos_token_id");
    if (!fields.status().ok()) ids = {-2};
    return ids;
  };
  const std::vector<std::int32_t> wrong = {-2};
  EXPECT_EQ(read(5), (std::vector<std::int32_t>{5}));
  EXPECT_EQ(read(json{5, -1, 0}), (std::vector<std::int32_t>{5, 0}));
  EXPECT_EQ(read(-1), (std::vector<std::int32_t>{}));
  EXPECT_EQ(read(-2), wrong);
  EXPECT_EQ(read(json{5, "x"}), wrong);
  EXPECT_EQ(read(std::int64_t{1} << 31), wrong);
}

TEST(JsonFields, ListsHaveTheLengthAndTheKindThatIsAskedFor) {
  const json object = {{"numbers", {1, 2.5}}, {"small", {1, 0.1}}, {"words", {"a", 1}}};
  const auto failure = [&](auto read) {
    JsonFields fields(object, "config.json");
    read(fields);
    return fields.status().message();
  };
  JsonFields fields(object, "config.json");
  EXPECT_EQ(fields.numbers("numbers", 2, 1.0), (std::vector<float>{1.0F, 2.5F}));
  EXPECT_TRUE(fields.status().ok()) << fields.status().to_string();
  EXPECT_EQ(failure([](JsonFields& f) { f.numbers("numbers", 3, 1.0); }).find("config.json: num"),
            0u);
  EXPECT_EQ(failure([](JsonFields& f) { f.numbers("small", 2, 1.0); }).find("config.json: small"),
            0u);
  EXPECT_EQ(failure([](JsonFields& f) { f.numbers("none", 2, 1.0); }).find("config.json: none is"),
            0u);
  EXPECT_EQ(failure([](JsonFields& f) { f.texts("words"); }).find("config.json: words is"), 0u);
}

TEST(JsonFields, TheFirstProblemIsKept) {
  const json object = {{"size", "large"}, {"inner", {{"kind", "new"}}}, {"later", 5}};
  JsonFields fields(object, "config.json");
  JsonFields inner(fields.object("inner"), "config.json: inner");
  inner.only("kind", "old", "old is");
  expect_failure(inner.status(), ErrorCode::kUnimplemented,
                 {"config.json: inner: kind = \"new\" is not supported (old is)"});
  fields.merge(inner);
  EXPECT_EQ(fields.integer("size", 3, 0, 9), 0);
  fields.text("later", "");
  EXPECT_EQ(fields.status().message(), inner.status().message());
}

TEST(JsonFields, ALongValueIsShownByItsBeginning) {
  const json object = {{"rope", std::string(1000, 'x')}};
  JsonFields fields(object, "config.json");
  fields.refuse("rope", "none is");
  expect_failure(fields.status(), ErrorCode::kUnimplemented,
                 {"rope = \"xxxxxxxxxx", "... is not supported (none is)"});
  EXPECT_LT(fields.status().message().size(), 150u);
}

TEST(JsonFields, WhatIsNoObjectHasNoFields) {
  const json list = json::array({1, 2});
  JsonFields fields(list, "config.json");
  EXPECT_FALSE(fields.has("size"));
  EXPECT_FALSE(fields.is_null("size"));
  expect_failure(fields.status(), ErrorCode::kInvalidArgument,
                 {"config.json: expected a JSON object, found array"});
}

TEST(ShortestDecimal, IsTheOneThatWasMeant) {
  EXPECT_EQ(shortest_decimal(1e-5F), 1e-05);
  EXPECT_EQ(shortest_decimal(0.1F), 0.1);
  EXPECT_EQ(shortest_decimal(500000.0F), 500000.0);
}

}  // namespace
}  // namespace rl
