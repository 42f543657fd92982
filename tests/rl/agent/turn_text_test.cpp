#include "rl/agent/turn_text.h"

#include "tests/rl/agent/agent_fixture.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

// As Qwen's: lines, and thoughts that earlier turns lose once a user has said more.
constexpr const char* kTemplate =
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ '<|assistant|>' + ('<think>' if "
    "loop.last else '') + m.content + '<|end|>\n' }}"
    "{% else %}{{ '<|user|>' + m.role + ':' + m.content + '<|end|>\n' }}{% endif %}{% endfor %}{% "
    "if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

class TurnTextTest : public AgentTest {};

TEST_F(TurnTextTest, WhatComesBetweenTurnsBeginsWhereTheModelStopped) {
  const auto text = TurnText::create(tokenizer(), kTemplate, ordered_json::object());
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  const auto ids =
      text->between(kToyEndId, ordered_json::array({{{"role", "tool"}, {"content", "4"}},
                                                    {{"role", "tool"}, {"content", "5"}}}));
  ASSERT_TRUE(ids.ok()) << ids.status().to_string();
  EXPECT_EQ(text->tokenizer().decode(*ids, false),
            "\n<|user|>tool:4<|end|>\n<|user|>tool:5<|end|>\n<|assistant|>");
}

TEST_F(TurnTextTest, AStopThatTheTemplateDoesNotWriteIsFollowedByTheTemplatesEnd) {
  const auto text = TurnText::create(tokenizer(), kTemplate, ordered_json::object());
  ASSERT_TRUE(text.ok());
  const auto ids =
      text->between(kToyPadId, ordered_json::array({{{"role", "user"}, {"content", "more"}}}));
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(text->tokenizer().decode(*ids, false),
            "<|end|>\n<|user|>user:more<|end|>\n<|assistant|>");
}

TEST_F(TurnTextTest, ATemplateThatRefusesSuchMessagesSaysSo) {
  const auto text =
      TurnText::create(tokenizer(),
                       "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no "
                       "tools') }}{% endif %}{{ m.content }}{% endfor %}",
                       ordered_json::object());
  ASSERT_TRUE(text.ok());
  const auto ids =
      text->between(kToyEndId, ordered_json::array({{{"role", "tool"}, {"content", "4"}}}));
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.status().message().find("no tools"), std::string::npos);
}

TEST_F(TurnTextTest, ATemplateThatEndsTurnsOtherwiseOnceMoreFollowsIsRefused) {
  const auto text = TurnText::create(
      tokenizer(),
      "{% for m in messages %}{{ m.content + ('<|end|>' if loop.last else '|') }}{% endfor %}",
      ordered_json::object());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->between(kToyEndId, ordered_json::array({{{"role", "tool"}, {"content", "4"}}}))
                .status()
                .code(),
            runtime::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
