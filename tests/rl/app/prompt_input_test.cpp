#include "rl/app/prompt_input.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace rl {
namespace {

TEST(PromptInput, ARowIsIdsMessagesAChatOrAText) {
  const auto kind = [](const std::string& row) {
    const auto input = parse_prompt_row(row, "stdin:3");
    return input.ok() ? std::to_string(input->prompt.index()) : input.status().message();
  };
  EXPECT_EQ(kind(R"({"ids": [1, 2]})"), "0");
  EXPECT_EQ(kind(R"({"prompt": "a"})"), "1");
  EXPECT_EQ(kind(R"({"chat": "a"})"), "2");
  EXPECT_EQ(kind(R"({"messages": []})"), "2");
  EXPECT_EQ(kind("[]"), "stdin:3: not a JSON object");
  EXPECT_EQ(kind("{}"), "stdin:3: no \"prompt\", \"chat\", \"messages\" or \"ids\"");
}

TEST(PromptInput, ToolsOfARowAreAListOfObjects) {
  const auto tools = [](const std::string& written) {
    const auto input = parse_prompt_row(R"({"chat": "a", "tools": )" + written + "}", "stdin:3");
    return input.ok() ? input->tools.dump() : input.status().message();
  };
  EXPECT_EQ(tools(R"([{"name": "f"}])"), R"([{"name":"f"}])");
  EXPECT_EQ(tools("null"), "null");
  EXPECT_TRUE(tools("5").starts_with("stdin:3: \"tools\" must be a list of objects")) << tools("5");
  EXPECT_TRUE(parse_prompt_row(R"({"chat": "a"})", "stdin:3")->tools.is_null());
}

}  // namespace
}  // namespace rl
