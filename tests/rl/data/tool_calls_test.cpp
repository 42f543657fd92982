#include "rl/data/tool_calls.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

using nlohmann::ordered_json;

TEST(ToolCalls, AMessageWithTextInAnyFormIsMoreThanItsCalls) {
  const auto only_calls = [](const std::string& content) {
    return only_calls_tools(
        ordered_json::parse(R"({"role": "assistant", "tool_calls": [{}])" + content + "}"));
  };
  for (const char* blank : {"", R"(, "content": null)", R"(, "content": "")", R"(, "content": [])",
                            R"(, "content": ["", {"type": "text", "text": ""}, {"type": "text"}])"})
    EXPECT_TRUE(only_calls(blank)) << blank;
  for (const char* said : {R"(, "content": " ")", R"(, "content": ["", "b"])",
                           R"(, "content": [{"type": "text", "text": ""}, {"text": "b"}])"})
    EXPECT_FALSE(only_calls(said)) << said;
}

TEST(ToolCalls, AMessageWithoutCallsIsItsEmptyText) {
  for (const char* none : {"null", "[]", "{}", "\"\""})
    EXPECT_FALSE(only_calls_tools(
        ordered_json::parse(R"({"content": "", "tool_calls": )" + std::string(none) + "}")))
        << none;
}

// Templates join contents, and null is no text.
TEST(ToolCalls, WithoutItsCallsTheLastMessageHasAText) {
  const ordered_json messages = ordered_json::parse(R"([
      {"role": "assistant", "content": null, "tool_calls": [1]},
      {"role": "assistant", "content": null, "tool_calls": [2], "weight": 0}])");
  EXPECT_EQ(without_field(messages, kToolCalls), ordered_json::parse(R"([
      {"role": "assistant", "content": null, "tool_calls": [1]},
      {"role": "assistant", "content": "", "weight": 0}])"));
  EXPECT_EQ(
      without_field(ordered_json::parse(R"([{"content": "b", "tool_calls": [1]}])"), kToolCalls),
      ordered_json::parse(R"([{"content": "b"}])"));
  EXPECT_EQ(without_field(ordered_json::parse(R"([{"tool_calls": [1]}])"), kToolCalls),
            ordered_json::parse(R"([{"content": ""}])"));
}

}  // namespace
}  // namespace rl
