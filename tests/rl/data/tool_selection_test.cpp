#include "rl/data/tool_selection.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using support::expect_failure;

class ToolSelectionTest : public ::testing::Test {
 protected:
  static ordered_json schemas(const std::vector<std::string>& names) {
    ordered_json all = ordered_json::array();
    for (const std::string& name : names)
      all.push_back({{"type", "function"}, {"function", {{"name", name}}}});
    return all;
  }
  static ordered_json selecting(const char* selection) {
    return {{"index", 3}, {"tool_selection", ordered_json::parse(selection)}};
  }
};

TEST_F(ToolSelectionTest, ARowHasTheToolsThatItNames) {
  const ordered_json all = schemas({"add", "search", "sort"});
  EXPECT_EQ(*selected_tools(all, selecting(R"(["sort", "add"])")), schemas({"add", "sort"}))
      << "in the order of the schemas";
  EXPECT_EQ(*selected_tools(all, selecting(R"(["fly", "sort"])")), schemas({"sort"}));
  EXPECT_EQ(*selected_tools(all, selecting(R"(["fly"])")), ordered_json::array());
}

TEST_F(ToolSelectionTest, ARowThatSelectsNoneHasAll) {
  // Without a selection nothing is asked of schemas either.
  ordered_json all = schemas({"add"});
  all.push_back(5);
  for (const ordered_json& extra : {ordered_json(), ordered_json("a text"),
                                    ordered_json{{"index", 3}}, selecting("[]"), selecting("null")})
    EXPECT_EQ(*selected_tools(all, extra), all) << extra;
}

TEST_F(ToolSelectionTest, WhatIsNoNameInARowIsNamed) {
  ordered_json all = schemas({"add"});
  all.push_back({{"type", "function"}});  // it has no name, as null is none
  expect_failure(selected_tools(all, selecting(R"(["add", null])")).status(),
                 ErrorCode::kInvalidArgument,
                 {"extra_info.tool_selection: tool 2 must be a name, it is null"});
  expect_failure(selected_tools(schemas({"add"}), selecting(R"([{"name": "add"}])")).status(),
                 ErrorCode::kInvalidArgument, {"tool 1 must be a name, it is an object"});
}

TEST_F(ToolSelectionTest, ASchemaThatNoNameChoosesIsNamed) {
  for (const char* schema :
       {"5", "null", "[]", "{}", R"({"function": "add"})", R"({"function": {"name": null}})"}) {
    ordered_json all = schemas({"add"});
    all.push_back(ordered_json::parse(schema));
    expect_failure(selected_tools(all, selecting(R"(["add"])")).status(),
                   ErrorCode::kInvalidArgument,
                   {"the schema of tool 2 has no function.name",
                    "it is " + ordered_json::parse(schema).dump()});
  }
}

}  // namespace
}  // namespace rl
