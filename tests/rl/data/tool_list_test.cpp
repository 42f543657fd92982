// Lists that are JSON text in part; row_mapping_test.cpp has those that are so as a whole.
#include "rl/data/tool_list.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

TEST(ToolList, ObjectsAndTheirTextsMayMix) {
  const ordered_json both = ordered_json::parse(R"([{"name": "f"}, {"name": "g"}])");
  ordered_json mixed = both;
  mixed[1] = both[1].dump();
  EXPECT_EQ(*read_tool_list(mixed, "f:3: 'tools'"), both);
  EXPECT_EQ(*read_tool_list(mixed.dump(), "f:3: 'tools'"), both) << "and all be text again";
  EXPECT_EQ(*read_tool_list(ordered_json::array(), "f:3: 'tools'"), ordered_json::array());
}

TEST(ToolList, TheErrorShowsWhatStandsThere) {
  const auto expect_told = [](const ordered_json& written, const std::string& what) {
    support::expect_failure(read_tool_list(written, "f:3: 'tools'").status(),
                            runtime::ErrorCode::kInvalidArgument,
                            {"f:3: 'tools' must be a list of objects", "it is " + what});
  };
  expect_told(5, "a number");
  expect_told({{"name", "f"}}, "an object");
  expect_told(ordered_json::parse(R"([{"name": "f"}, ["g"]])"), "a list with another member");
  expect_told("[\"f\"]", "a list with another member");
  expect_told("You may call\nf", "the text 'You may call\\nf'");
  expect_told(std::string(1000, 'x'), "the text '" + std::string(60, 'x') + "'");
}

}  // namespace
}  // namespace rl
