#include "rl/agent/tool_call.h"

#include <gtest/gtest.h>

#include "rl/agent/cut_answer.h"

namespace rl {
namespace {

TEST(ToolCall, HermesCallsAreFoundInTheText) {
  const AssistantTurn turn =
      read_turn(ToolFormat::kHermes,
                "Let me see. <tool_call>\n{\"name\": \"add\", \"arguments\": {\"b\": 2, \"a\": "
                "1}}\n</tool_call><tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call> done");
  ASSERT_EQ(turn.calls.size(), 2U);
  EXPECT_EQ(turn.calls[0].name, "add");
  EXPECT_EQ(turn.calls[0].arguments.dump(), R"({"b":2,"a":1})");  // as the model wrote them
  EXPECT_EQ(turn.calls[1].name, "now");
  EXPECT_EQ(turn.content, "Let me see.  done");
  EXPECT_EQ(turn.unreadable, 0);
}

TEST(ToolCall, WhatIsNoCallIsCountedAndLeftOut) {
  const AssistantTurn turn =
      read_turn(ToolFormat::kHermes,
                "<tool_call>add 1 2</tool_call><tool_call>{\"name\": 7, \"arguments\": "
                "{}}</tool_call><tool_call>{\"name\": \"add\"}</tool_call>");
  EXPECT_TRUE(turn.calls.empty());
  EXPECT_EQ(turn.unreadable, 3);
}

TEST(ToolCall, ACallWithoutAnEndIsText) {
  const AssistantTurn turn =
      read_turn(ToolFormat::kHermes, "a <tool_call>{\"name\": \"add\", \"arguments\": {}}");
  EXPECT_TRUE(turn.calls.empty());
  EXPECT_EQ(turn.unreadable, 0);
  EXPECT_EQ(turn.content, "a <tool_call>{\"name\": \"add\", \"arguments\": {}}");
}

TEST(ToolCall, FormatsThatAreNotReadAreRefusedByName) {
  EXPECT_TRUE(parse_tool_format("hermes").ok());
  EXPECT_EQ(parse_tool_format("gpt-oss").status().code(), runtime::ErrorCode::kUnimplemented);
  EXPECT_EQ(parse_tool_format("hermit").status().code(), runtime::ErrorCode::kInvalidArgument);
}

TEST(CutAnswer, IsCutOnTheSideThatIsAskedFor) {
  EXPECT_EQ(cut_answer("abcdef", 6, TruncateSide::kMiddle), "abcdef");
  EXPECT_EQ(cut_answer("abcdefg", 4, TruncateSide::kLeft), "(truncated)...defg");
  EXPECT_EQ(cut_answer("abcdefg", 4, TruncateSide::kRight), "abcd...(truncated)");
  EXPECT_EQ(cut_answer("abcdefg", 4, TruncateSide::kMiddle), "ab...(truncated)...fg");
}

TEST(CutAnswer, CharactersStayWhole) {
  EXPECT_EQ(cut_answer("äöüß", 4, TruncateSide::kRight), "äöüß");
  EXPECT_EQ(cut_answer("äöüßé", 2, TruncateSide::kRight), "äö...(truncated)");
  EXPECT_EQ(cut_answer("äöüßé", 2, TruncateSide::kLeft), "(truncated)...ßé");
}

}  // namespace
}  // namespace rl
