// Templates are functions here: what is found does not hang on how one is written.
#include "rl/data/unwritten_fields.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;

class UnwrittenFieldsTest : public ::testing::Test {
 protected:
  static UnwrittenFields found(const char* messages, const RenderMessages& render) {
    return unwritten_message_fields(ordered_json::parse(messages), "f:3", "model.template", render);
  }
  static Result<std::string> contents(const ordered_json& messages) {
    std::string text;
    for (const ordered_json& message : messages) text += message.at("content").get<std::string>();
    return text;
  }

  static constexpr const char* kCallsAndThinks = R"([
      {"role": "user", "content": "a"},
      {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
      {"role": "assistant", "content": "b", "reasoning_content": "hm"}])";
};

TEST_F(UnwrittenFieldsTest, AFieldThatChangesNothingIsNamedWithItsMessageAndTheCure) {
  const UnwrittenFields unwritten = found(kCallsAndThinks, contents);
  ASSERT_EQ(unwritten.size(), 2u);
  for (const auto& [field, message] :
       {std::pair("tool_calls", "message 2 has 'tool_calls'"),
        std::pair("reasoning_content", "message 3 has 'reasoning_content'")}) {
    EXPECT_TRUE(unwritten.at(field).starts_with(std::string("f:3: ") + message))
        << unwritten.at(field);
    EXPECT_NE(unwritten.at(field).find("set model.template"), std::string::npos);
  }
}

// Templates drop the reasoning of earlier turns, so the field is tried in a last message.
TEST_F(UnwrittenFieldsTest, AFieldThatIsWrittenOfTheLastMessageIsWritten) {
  const auto last = [](const ordered_json& messages) -> Result<std::string> {
    return messages.back().dump();
  };
  EXPECT_TRUE(found(kCallsAndThinks, last).empty());
}

TEST_F(UnwrittenFieldsTest, ATemplateThatRefusesTheMessagesSaysNothingOfTheirFields) {
  for (const bool refuses_all : {true, false}) {
    const auto render = [&](const ordered_json& messages) -> Result<std::string> {
      if (refuses_all || !messages.back().contains("tool_calls"))
        return runtime::invalid_argument("a turn must call");
      return contents(messages);
    };
    EXPECT_TRUE(found(kCallsAndThinks, render).empty()) << refuses_all;
  }
}

TEST_F(UnwrittenFieldsTest, AnEmptyFieldIsNotMissed) {
  for (const char* empty : {"null", "[]", "{}", "\"\""}) {
    const std::string messages = R"([{"role": "assistant", "content": "b", "tool_calls": )" +
                                 std::string(empty) + R"(, "reasoning_content": )" + empty + "}]";
    EXPECT_TRUE(found(messages.c_str(), contents).empty()) << empty;
  }
}

}  // namespace
}  // namespace rl
