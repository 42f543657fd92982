// Forms of single messages. Whole rows: row_mapping_test.cpp, dataset_test.cpp.
#include "rl/data/chat_messages.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using support::expect_failure;

class ChatMessagesTest : public ::testing::Test {
 protected:
  static runtime::Status normalise(const char* messages, ordered_json& into) {
    into = ordered_json::parse(messages);
    return normalise_messages(into, "f:3: 'prompt'");
  }
};

TEST_F(ChatMessagesTest, CallsInAListStayOneMessage) {
  ordered_json messages;
  const auto status = normalise(R"([
      {"from": "function_call",
       "value": "[{\"name\": \"f\"}, {\"name\": \"g\", \"arguments\": 5}]"},
      {"from": "function_call", "value": {"name": "h", "arguments": {"x": 1}}}])",
                                messages);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(messages, ordered_json::parse(R"([
      {"role": "assistant", "content": "", "tool_calls": [
          {"type": "function", "function": {"name": "f", "arguments": {}}},
          {"type": "function", "function": {"name": "g", "arguments": 5}}]},
      {"role": "assistant", "content": "", "tool_calls": [
          {"type": "function", "function": {"name": "h", "arguments": {"x": 1}}}]}])"));
  // OpenAI's older form has room for one.
  expect_failure(normalise(R"([{"role": "assistant", "content": "",
                                "function_call": [{"name": "f"}, {"name": "g"}]}])",
                           messages),
                 ErrorCode::kInvalidArgument,
                 {"f:3: 'prompt': message 1: 'function_call' is not a call"});
}

TEST_F(ChatMessagesTest, ARoleFunctionAnswersACallBeforeIt) {
  ordered_json messages;
  const auto status = normalise(R"([
      {"role": "function", "content": "of nothing"},
      {"role": "assistant", "content": "", "function_call": {"name": "f"}},
      {"role": "function", "content": "of f"}])",
                                messages);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(messages[0].at("role"), "function") << "templates may know that role";
  EXPECT_EQ(messages[2].at("role"), "tool");
}

TEST_F(ChatMessagesTest, TheFormsMayMixAndARoleIsKept) {
  ordered_json messages;
  const auto status = normalise(R"([
      {"from": "human", "value": "a"},
      {"role": "assistant", "content": "b", "from": "other", "value": "kept"},
      {"role": "user", "content": [{"type": "text", "text": "c"}, "d"]}])",
                                messages);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(messages, ordered_json::parse(R"([
      {"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "from": "other", "value": "kept"},
      {"role": "user", "content": [{"type": "text", "text": "c"}, "d"]}])"));
  expect_failure(normalise(R"([{"from": "human"}])", messages), ErrorCode::kInvalidArgument,
                 {"f:3: 'prompt': message 1 has no 'role'"});
}

}  // namespace
}  // namespace rl
