#include "rl/template/value.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "rl/template/arguments.h"
#include "rl/template/budget.h"
#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using testing::template_failure;

class TemplateValueTest : public ::testing::Test {
 protected:
  static TemplateValue of(const ordered_json& json) { return TemplateValue::from_json(json); }
  bool equal(const TemplateValue& a, const TemplateValue& b) { return equal_values(budget_, a, b); }
  int order(const TemplateValue& a, const TemplateValue& b) {
    return compare_values(budget_, a, b, "<");
  }

  RenderBudget budget_{TemplateLimits{}};
};

TEST_F(TemplateValueTest, DictionariesReplaceEqualKeysAndKeepTheirOrder) {
  DictBox dict;
  dict.set(budget_, TemplateValue(std::int64_t{1}), TemplateValue::text("a"));
  dict.set(budget_, TemplateValue::text("1"), TemplateValue::text("b"));
  dict.set(budget_, TemplateValue(true), TemplateValue::text("c"));
  EXPECT_EQ(TemplateValue::dict(dict).repr(budget_), "{1: 'c', '1': 'b'}") << "1 == True";
  DictBox large;  // more keys than are searched one by one
  for (int round = 0; round < 2; ++round) {
    for (int i = 40; i-- > 0;) large.set_text("k" + std::to_string(i), of(i + round));
  }
  ASSERT_EQ(large.entries().size(), 40u);
  EXPECT_EQ(large.entries().front().first.as_string(), "k39");
  EXPECT_EQ(large.find("k7")->as_int(), 8);
  EXPECT_EQ(large.find("k40"), nullptr);
}

TEST_F(TemplateValueTest, EqualityIsPythons) {
  EXPECT_TRUE(equal(of(1), of(1.0)));
  EXPECT_TRUE(equal(of(true), of(1)));
  EXPECT_FALSE(equal(of("1"), of(1)));
  EXPECT_FALSE(equal(of({1, 2}), TemplateValue::tuple({of(1), of(2)})));
  EXPECT_TRUE(equal(of({{"a", 1}, {"b", 2}}), of({{"b", 2}, {"a", 1}})));
  EXPECT_FALSE(equal(of({{"a", 1}, {"b", 2}}), of({{"a", 1}, {"c", 2}})));
  EXPECT_FALSE(equal(of(nullptr), TemplateValue::undefined("x")));
}

TEST_F(TemplateValueTest, IntegersBeyond64BitsKeepTheirDigits) {
  const TemplateValue big = TemplateValue::integer("-0018446744073709551616");
  ASSERT_TRUE(big.is_big_integer());
  EXPECT_EQ(big.repr(budget_), "-18446744073709551616");
  EXPECT_TRUE(TemplateValue::integer("0009223372036854775807").is_int());
  EXPECT_EQ(of(18446744073709551615u).repr(budget_), "18446744073709551615");
  EXPECT_LT(order(big, of(-1)), 0);
  EXPECT_LT(order(TemplateValue::integer("-99999999999999999999"), big), 0);
  EXPECT_GT(order(TemplateValue::integer("99999999999999999999"), of(1e18)), 0);
  EXPECT_TRUE(equal(big, TemplateValue::integer("-18446744073709551616")));
}

TEST_F(TemplateValueTest, OrderNeedsTwoOfAKind) {
  EXPECT_LT(order(of("B"), of("a")), 0);
  EXPECT_LT(order(of({1, 2}), of({1, 3})), 0);
  EXPECT_LT(order(of({1}), of({1, 0})), 0);
  EXPECT_EQ(order(of(1), of(1.0)), 0);
  EXPECT_EQ(template_failure([&] { order(of("a"), of(1)); }).message(),
            "TypeError: '<' not supported between instances of 'str' and 'int'");
  EXPECT_EQ(template_failure([&] {
              order(TemplateValue::undefined("'x' is undefined"), of(1));
            }).message(),
            "UndefinedError: 'x' is undefined");
}

TEST_F(TemplateValueTest, PrintsAsPythonDoes) {
  EXPECT_EQ(of({1, "a", nullptr, true, 1.0, {{"k", ordered_json::array()}}}).to_string(budget_),
            "[1, 'a', None, True, 1.0, {'k': []}]");
  EXPECT_EQ(TemplateValue::tuple({of("a")}).repr(budget_), "('a',)");
  EXPECT_EQ(TemplateValue::range({of(1), of(3)}, {1, 5, 2}).repr(budget_), "range(1, 5, 2)");
  EXPECT_EQ(of("a'").to_string(budget_), "a'");
  EXPECT_EQ(TemplateValue::undefined("x").to_string(budget_), "");
}

TEST_F(TemplateValueTest, JsonTextIsThatOfJsonDumps) {
  const TemplateValue value = of({{"b", {1, 2}}, {"a", "\u00e9"}, {"c", ordered_json::object()}});
  EXPECT_EQ(to_json_text(budget_, value, {}), R"({"b": [1, 2], "a": "é", "c": {}})");
  const JsonStyle style{
      .ensure_ascii = true, .sort_keys = true, .indent = "  ", .multi_line = true};
  EXPECT_EQ(to_json_text(budget_, value, style),
            "{\n  \"a\": \"\\u00e9\",\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": {}\n}");
  DictBox keys;
  keys.set(budget_, of(1), of(nullptr));
  EXPECT_EQ(to_json_text(budget_, TemplateValue::dict(keys), {}), R"({"1": null})");
  EXPECT_EQ(
      template_failure([&] { to_json_text(budget_, TemplateValue::undefined("x"), {}); }).message(),
      "TypeError: Object of type Undefined is not JSON serializable");
}

TEST_F(TemplateValueTest, NestsUpToALimit) {
  TemplateValue value = of(1);
  for (int i = 0; i < 200; ++i) value = TemplateValue::list({value});
  EXPECT_EQ(value.depth(), 200);
  EXPECT_EQ(template_failure([&] { TemplateValue::list({value}); }).message(),
            "RecursionError: a value is nested deeper than 200");
  EXPECT_FALSE(template_failure([&] { TemplateValue::tuple({value}); }).ok());
}

TEST_F(TemplateValueTest, WhatIsLookedAtIsCharged) {
  const TemplateValue text = TemplateValue::text(std::string(3200, 'x'));
  const TemplateValue same = TemplateValue::text(std::string(3200, 'x'));
  RenderBudget budget({.steps_max = 250});
  EXPECT_TRUE(equal_values(budget, text, same));
  EXPECT_EQ(compare_values(budget, text, same, "<"), 0);
  EXPECT_EQ(template_failure([&] { text.to_string(budget); }).message(),
            "rendering takes more than 250 steps");
  RenderBudget memory({.work_bytes_max = 10});
  EXPECT_EQ(template_failure([&] { of({"abcdefgh"}).repr(memory); }).message(),
            "rendering needs more than 10 bytes of memory");
}

TEST_F(TemplateValueTest, ACallableIsAnyFunctionOfItsArguments) {
  CallableBox box;
  box.type_name = "function";
  box.name = "first";
  box.call = [](const CallArguments& arguments) { return arguments.positional.at(0); };
  const TemplateValue first(std::make_shared<const CallableBox>(std::move(box)));
  CallArguments arguments;
  arguments.positional = {of(7)};
  EXPECT_EQ(first.as_callable().call(arguments).as_int(), 7);
  EXPECT_EQ(first.repr(budget_), "<function 'first'>");
}

TEST_F(TemplateValueTest, UndefinedValuesHaveNoUse) {
  require_defined(of(nullptr));
  EXPECT_EQ(template_failure([] {
              require_defined(TemplateValue::undefined("'x' is undefined"));
            }).message(),
            "UndefinedError: 'x' is undefined");
}

TEST_F(TemplateValueTest, SameIsTheObjectAndNotItsValue) {
  const TemplateValue list = of({1}), copy = list;
  EXPECT_TRUE(list.same_as(copy));
  EXPECT_FALSE(list.same_as(of({1})));
  EXPECT_TRUE(of(nullptr).same_as(of(nullptr)));
  EXPECT_FALSE(of(1).same_as(of(1.0)));
}

}  // namespace
}  // namespace rl
