// The filters on lists. The expected values are Jinja2's.
#include "rl/template/list_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using testing::template_failure;

class ListFiltersTest : public ::testing::Test {
 protected:
  // What a filter makes of `input`; the keywords come after the arguments.
  std::string filtered(std::string_view name, const ordered_json& input,
                       const std::vector<ordered_json>& given = {},
                       const std::vector<std::pair<std::string, ordered_json>>& named = {}) {
    const auto filters = list_filters();
    const auto found = std::find_if(filters.begin(), filters.end(),
                                    [&](const NamedFilter& one) { return one.name == name; });
    if (found == filters.end()) return "no filter";
    CallArguments arguments;
    for (const ordered_json& one : given)
      arguments.positional.push_back(TemplateValue::from_json(one));
    for (const auto& [key, value] : named)
      arguments.named.emplace_back(key, TemplateValue::from_json(value));
    std::string text;
    const runtime::Status failure = template_failure([&] {
      const TemplateValue value =
          found->function(evaluator_, TemplateValue::from_json(input), arguments);
      text = value.is_undefined() ? value.as_undefined().message : value.repr(evaluator_.budget());
    });
    return failure.ok() ? text : failure.message();
  }

  TemplateEvaluator evaluator_{ordered_json::object(), {}};
};

TEST_F(ListFiltersTest, SortingIsStableAndIgnoresCase) {
  const ordered_json letters = {"b", "A", "a", "B"};
  EXPECT_EQ(filtered("sort", letters), "['A', 'a', 'b', 'B']");
  EXPECT_EQ(filtered("sort", letters, {true}), "['b', 'B', 'A', 'a']");
  EXPECT_EQ(filtered("sort", letters, {}, {{"case_sensitive", true}}), "['A', 'B', 'a', 'b']");
  const ordered_json rows = {{{"a", 1}, {"b", 2}}, {{"a", 1}, {"b", 1}}, {{"a", 0}}};
  EXPECT_EQ(filtered("sort", rows, {}, {{"attribute", "a,b"}}),
            "[{'a': 0}, {'a': 1, 'b': 1}, {'a': 1, 'b': 2}]");
  EXPECT_EQ(filtered("sort", {1, "a"}),
            "TypeError: '<' not supported between instances of 'str' and 'int'");
  EXPECT_EQ(filtered("dictsort", {{"b", 1}, {"A", 2}}), "[('A', 2), ('b', 1)]");
  EXPECT_EQ(filtered("dictsort", {{"b", 1}, {"A", 2}}, {false, "value"}), "[('b', 1), ('A', 2)]");
}

TEST_F(ListFiltersTest, WhatIsEqualKeepsItsFirstSpelling) {
  EXPECT_EQ(filtered("unique", {"B", "a", "b", "A"}), "['B', 'a']");
  EXPECT_EQ(filtered("unique", {1, true, 1.0, 2}), "[1, 2]");
  EXPECT_EQ(filtered("unique", {{1}}), "TypeError: unhashable type: 'list'");
  const ordered_json rows = {
      {{"c", "x"}, {"v", 1}}, {{"c", "Y"}, {"v", 2}}, {{"c", "X"}, {"v", 3}}};
  EXPECT_EQ(filtered("groupby", rows, {"c"}),
            "[('x', [{'c': 'x', 'v': 1}, {'c': 'X', 'v': 3}]), ('Y', [{'c': 'Y', 'v': 2}])]");
}

TEST_F(ListFiltersTest, BatchesAndSlicesAreFilled) {
  EXPECT_EQ(filtered("batch", {1, 2, 3}, {2, 0}), "[[1, 2], [3, 0]]");
  EXPECT_EQ(filtered("batch", {1, 2, 3}, {2}), "[[1, 2], [3]]");
  EXPECT_EQ(filtered("slice", {1, 2, 3}, {2, 0}), "[[1, 2], [3, 0]]");
  EXPECT_EQ(filtered("slice", {1, 2, 3, 4}, {3}), "[[1, 2], [3], [4]]");
  EXPECT_EQ(filtered("batch", {1}, {0}), "ValueError: batch: a size from 1 to 100000 is needed");
  EXPECT_EQ(filtered("slice", {1}, {0}), "ValueError: slice: a number from 1 to 100000 is needed");
}

TEST_F(ListFiltersTest, ExtremesAreTheFirstOfEquals) {
  EXPECT_EQ(filtered("max", {"b", "B", "a"}), "'b'");
  EXPECT_EQ(filtered("min", {"A", "a", "b"}), "'A'");
  EXPECT_EQ(filtered("min", ordered_json::array()), "No aggregated item, sequence was empty.");
  EXPECT_EQ(filtered("sum", {1, 2}, {}, {{"start", 10}}), "13");
  EXPECT_EQ(filtered("join", {{{"v", 1}}, {{"v", 2}}}, {", ", "v"}), "'1, 2'");
  EXPECT_EQ(filtered("reverse", "h\u00e9"), "'\u00e9h'");
}

TEST_F(ListFiltersTest, MapsAndSelectsByAttributeOrByName) {
  const ordered_json rows = {{{"a", 1}}, {{"a", 0}}, ordered_json::object()};
  EXPECT_EQ(filtered("map", rows, {}, {{"attribute", "a"}, {"default", 7}}), "[1, 0, 7]");
  EXPECT_EQ(filtered("map", {"a", "b"}, {"upper"}), "['A', 'B']");
  EXPECT_EQ(filtered("selectattr", rows, {"a"}), "[{'a': 1}]");
  EXPECT_EQ(filtered("rejectattr", rows, {"a", "defined"}), "[{}]");
  EXPECT_EQ(filtered("select", {1, 2, 3}, {"gt", 1}), "[2, 3]");
  EXPECT_EQ(filtered("reject", {0, 1, ""}), "[0, '']");
  EXPECT_EQ(filtered("map", {1}), "FilterArgumentError: map requires a filter argument");
  EXPECT_EQ(filtered("map", nullptr, {"upper"}), "[]");
}

}  // namespace
}  // namespace rl
