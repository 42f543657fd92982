#include "rl/tokenizer/gguf_chat_templates.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/rl/model/fake_gguf.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;
using testing::FakeGguf;
using Templates = std::map<std::string, std::string>;

TEST(GgufChatTemplates, TheUnnamedOneIsTheDefaultWhateverTheListNames) {
  FakeGguf file;
  EXPECT_EQ(gguf_chat_templates(file).value_or({{"none", ""}}), Templates{});
  file.set_text("tokenizer.chat_template", "D");
  EXPECT_EQ(gguf_chat_templates(file).value_or({}), (Templates{{"default", "D"}}));
  file.set_texts("tokenizer.chat_templates", {"tool_use", "default", "rag"});
  file.set_text("tokenizer.chat_template.tool_use", "T");
  file.set_text("tokenizer.chat_template.default", "no");
  file.set_text("tokenizer.chat_template.rag", "");
  EXPECT_EQ(gguf_chat_templates(file).value_or({}),
            (Templates{{"default", "D"}, {"tool_use", "T"}}))
      << "an empty template is none";
}

TEST(GgufChatTemplates, DamageNamesTheKey) {
  FakeGguf lacks_one;
  lacks_one.set_texts("tokenizer.chat_templates", {"rag"});
  expect_failure(gguf_chat_templates(lacks_one).status(), ErrorCode::kNotFound,
                 {"m.gguf", "tokenizer.chat_template.rag"});
  FakeGguf of_numbers;
  of_numbers.set_bytes("tokenizer.chat_templates", "\x01");
  expect_failure(gguf_chat_templates(of_numbers).status(), ErrorCode::kInvalidArgument,
                 {"m.gguf", "tokenizer.chat_templates"});
  FakeGguf no_text;
  no_text.set_text("tokenizer.chat_template", "a\xff");
  expect_failure(gguf_chat_templates(no_text).status(), ErrorCode::kInvalidArgument,
                 {"m.gguf", "tokenizer.chat_template is not UTF-8"});
}

}  // namespace
}  // namespace rl
