#include "rl/data/conversation_builder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "rl/data/toy.h"
#include "tests/rl/data/test_files.h"
#include "tests/rl/tokenizer/tokenizer_fixtures.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

ConversationOptions toy_options() {
  ConversationOptions options;
  options.sequence.chat_template = toy_chat_template();
  return options;
}

// "user a", "assistant b": one message each.
DataRow conversation(const std::vector<std::string>& messages) {
  DataRow row;
  row.where = "f:3";
  row.prompt = ordered_json::array();
  for (const std::string& message : messages) {
    const std::size_t space = message.find(' ');
    row.prompt.push_back(
        {{"role", message.substr(0, space)}, {"content", message.substr(space + 1)}});
  }
  return row;
}

// The whole text, with what is learned in brackets.
std::string marked(const Tokenizer& tokenizer, const LearnedTokens& tokens) {
  std::string text;
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    const bool before = i > 0 && tokens.learned[i - 1] != 0;
    if (!before && tokens.learned[i] != 0) text += "[";
    if (before && tokens.learned[i] == 0) text += "]";
    text += tokenizer.decode(std::vector<std::int32_t>{tokens.ids[i]}, false);
  }
  return text + (!tokens.learned.empty() && tokens.learned.back() != 0 ? "]" : "");
}

std::string tokenize(const DataRow& row, const ConversationOptions& options = toy_options()) {
  static const Tokenizer tokenizer = testing::toy_tokenizer();
  const auto builder = ConversationBuilder::create(tokenizer, options);
  if (!builder.ok()) return builder.status().message();
  const auto tokens = builder->tokenize(row);
  return tokens.ok() ? marked(tokenizer, *tokens) : tokens.status().message();
}

TEST(ConversationBuilder, LearnsEveryTurnOfTheAssistantAndNothingElse) {
  EXPECT_EQ(tokenize(conversation({"user ab", "assistant cd", "user e", "assistant f"})),
            "<|user|>ab<|end|><|assistant|>[cd<|end|>]<|user|>e<|end|><|assistant|>[f<|end|>]");
}

TEST(ConversationBuilder, WhatComesAfterTheLastAnswerIsRead) {
  EXPECT_EQ(tokenize(conversation({"user a", "assistant b", "user c"})),
            "<|user|>a<|end|><|assistant|>[b<|end|>]<|user|>c<|end|>");
}

TEST(ConversationBuilder, TheAssistantMayOpen) {
  // Nothing precedes the very first token, so that it cannot be learned.
  EXPECT_EQ(tokenize(conversation({"assistant ab", "user c", "assistant d"})),
            "<|assistant|>[ab<|end|>]<|user|>c<|end|><|assistant|>[d<|end|>]");
}

// The header of several tokens, what a template puts before a conversation, and thoughts that it
// adds to an answer.
TEST(ConversationBuilder, OfAnAssistantThatOpensTheAnswerIsLearned) {
  for (const bool by_message : {false, true}) {
    ConversationOptions options = toy_options();
    options.message_by_message = by_message;
    const std::string ask = "{% if add_generation_prompt %}{{ '<|assistant|>go' }}{% endif %}";
    const auto turns = [](const char* answer) {
      return std::string("{% if messages[0].role != 'system' %}{{ 'be good' }}{% endif %}") +
             "{% for m in messages %}{{ '<|' + m.role + '|>go' + " + answer +
             " + '<|end|>' }}{% endfor %}";
    };
    options.sequence.chat_template = turns("m.content") + ask;
    const DataRow row = conversation({"assistant ab", "user c", "assistant d"});
    EXPECT_EQ(tokenize(row, options),
              "be good<|assistant|>go[ab<|end|>]<|user|>goc<|end|><|assistant|>go[d<|end|>]");
    options.sequence.chat_template =
        turns("('so ' if m.role == 'assistant' else '') + m.content") + ask;
    EXPECT_EQ(tokenize(row, options),
              "be good<|assistant|>go[so ab<|end|>]<|user|>goc<|end|><|assistant|>go[so d<|end|>]");
    EXPECT_EQ(tokenize(conversation({"assistant ab"}), options),
              "be good<|assistant|>go[so ab<|end|>]");
  }
}

TEST(ConversationBuilder, OfAPromptAndAResponseTheResponseIsLearned) {
  DataRow row = conversation({"user a"});
  row.response = "bc";  // closed with an end where the tokenizer has one, which this does not say
  EXPECT_EQ(tokenize(row), "<|user|>a<|end|><|assistant|>[bc]");
  row.prompt = "a";
  EXPECT_EQ(tokenize(row), "a[bc]");
}

TEST(ConversationBuilder, CutsAsTruncationSays) {
  ConversationOptions options = toy_options();
  options.sequence.tokens_max = 7;
  const DataRow row = conversation({"user a", "assistant b", "user c", "assistant d"});
  EXPECT_EQ(tokenize(row, options),
            "f:3: the sequence has 12 tokens, data.max_length is 7: raise it, or set "
            "data.truncation=left|right");
  options.sequence.truncation = Truncation::kLeft;
  EXPECT_EQ(tokenize(row, options),
            "<|end|><|user|>c<|end|><|assistant|>[d<|end|>]");  // the first token that is left is
                                                                // not learned
  options.sequence.truncation = Truncation::kRight;
  EXPECT_EQ(tokenize(row, options), "<|user|>a<|end|><|assistant|>[b<|end|>]<|user|>");
}

TEST(ConversationBuilder, RowsWithNothingToLearnAreNamed) {
  EXPECT_NE(tokenize(conversation({"user a", "system b"}))
                .find("f:3: nothing to learn: no message is the assistant's"),
            std::string::npos);
  DataRow row = conversation({"user a"});
  row.prompt = "a";
  EXPECT_NE(tokenize(row).find(
                "f:3: nothing to learn: the row has a prompt and no response (data.response_key)"),
            std::string::npos);
}

// As Qwen3's template drops the thoughts of earlier turns.
TEST(ConversationBuilder,
     ATemplateThatRewritesEarlierTurnsIsAnErrorUnlessMessagesAreRenderedByThemselves) {
  ConversationOptions options = toy_options();
  options.sequence.chat_template =
      "{% for message in messages %}{{ '<|' + message.role + '|>' + (message.content if loop.last "
      "or message.role == 'user' else message.content[1:]) + '<|end|>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";
  const DataRow row = conversation({"user a", "assistant bc", "user d", "assistant ef"});
  const std::string told = tokenize(row, options);
  EXPECT_NE(told.find("f:3: message 4"), std::string::npos) << told;
  EXPECT_NE(told.find("data.ignore_input_ids_mismatch=true"), std::string::npos) << told;
  options.message_by_message = true;
  EXPECT_EQ(tokenize(row, options),
            "<|user|>a<|end|><|assistant|>[bc<|end|>]<|user|>d<|end|><|assistant|>[ef<|end|>]");
}

// A system prompt that a template puts before every conversation comes once; and both ways agree
// where the template is plain.
TEST(ConversationBuilder, MessagesByThemselvesAreTheConversation) {
  ConversationOptions options = toy_options();
  options.sequence.chat_template =
      "{% if messages[0].role != 'system' %}{{ 'be good' }}{% endif %}" + toy_chat_template();
  const DataRow row = conversation({"user a", "assistant b", "user c", "assistant d"});
  const std::string grown = tokenize(row, options);
  EXPECT_EQ(
      grown,
      "be good<|user|>a<|end|><|assistant|>[b<|end|>]<|user|>c<|end|><|assistant|>[d<|end|>]");
  options.message_by_message = true;
  EXPECT_EQ(tokenize(row, options), grown);
}

// In the styles that published models ship: answers are learned whole, questions not at all, and
// the pieces are the conversation.
TEST(ConversationBuilder, PublishedStylesOfTemplates) {
  const auto tokenizer =
      Tokenizer::load(testing::tokenizer_fixtures() / "tokenizers" / "qwen2_split_nfc");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/template/style_cases.json");
  const ordered_json all = ordered_json::parse(file);
  const DataRow row = conversation(
      {"user Is it cold?", "assistant Very cold.", "user And at sea?", "assistant Colder still!"});
  int seen = 0;
  for (const ordered_json& item : all.at("styles")) {
    const std::string style = item.at("style");
    if (style != "llama_tools" && style != "mistral_calls" && style != "documents" &&
        style != "reasoning")
      continue;
    ++seen;
    ConversationOptions options;
    options.sequence.tokens_max = 4096;
    options.sequence.chat_template = item.at("template").get<std::string>();
    for (const auto& [name, value] : all.at("variables").items()) {
      if (name != "messages" && name != "tools" && name != "documents" &&
          name != "add_generation_prompt")
        options.sequence.template_variables[name] = value;
    }
    // It writes empty thoughts into the last answer only, as Qwen3's does.
    options.message_by_message = style == "reasoning";
    const auto builder = ConversationBuilder::create(*tokenizer, options);
    ASSERT_TRUE(builder.ok()) << style << builder.status().to_string();
    const auto tokens = builder->tokenize(row);
    ASSERT_TRUE(tokens.ok()) << style << ": " << tokens.status().to_string();
    std::string learned;
    std::string given;
    for (std::size_t i = 0; i < tokens->ids.size(); ++i)
      (tokens->learned[i] != 0 ? learned : given) +=
          tokenizer->decode(std::vector<std::int32_t>{tokens->ids[i]}, false);
    for (const char* answer : {"Very cold.", "Colder still!"}) {
      EXPECT_NE(learned.find(answer), std::string::npos) << style << ": " << learned;
      EXPECT_EQ(given.find(answer), std::string::npos) << style << ": " << given;
    }
    for (const char* question : {"Is it cold?", "And at sea?"}) {
      EXPECT_EQ(learned.find(question), std::string::npos) << style << ": " << learned;
      EXPECT_NE(given.find(question), std::string::npos) << style << ": " << given;
    }
  }
  EXPECT_EQ(seen, 4);
}

TEST(ConversationBuilder, ToolsAndThinkingReachTheTemplate) {
  ConversationOptions options = toy_options();
  options.sequence.chat_template =
      "{% if tools %}{{ tools[0] }}{% endif %}{% if enable_thinking %}{{ 'deep' }}{% endif %}" +
      toy_chat_template();
  DataRow row = conversation({"user a", "assistant b"});
  EXPECT_EQ(tokenize(row, options), "<|user|>a<|end|><|assistant|>[b<|end|>]");
  options.thinking_given = options.thinking = true;
  row.tools = {"saw"};
  EXPECT_EQ(tokenize(row, options), "sawdeep<|user|>a<|end|><|assistant|>[b<|end|>]");
  row.extra["enable_thinking"] = false;
  EXPECT_EQ(tokenize(row, options), "saw<|user|>a<|end|><|assistant|>[b<|end|>]");
}

// A question, a call, its result and an answer; the call with this text.
DataRow calling(const ordered_json& content) {
  DataRow row = conversation({"user a", "assistant b", "tool c", "assistant d"});
  row.prompt[1] = {{"role", "assistant"},
                   {"content", content},
                   {"tool_calls", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}};
  return row;
}

TEST(ConversationBuilder, CallsThatTheTemplateDoesNotWriteAreNoEmptyAnswer) {
  ConversationOptions options = toy_options();
  const std::string refused =
      "f:3: message 2 has 'tool_calls' and no text, and the chat template does not write the "
      "calls: an empty answer would be learned. Set model.custom_chat_template";
  for (const bool by_message : {false, true}) {
    options.message_by_message = by_message;
    for (const ordered_json& nothing : {ordered_json(""), ordered_json(nullptr)})
      EXPECT_TRUE(tokenize(calling(nothing), options).starts_with(refused))
          << tokenize(calling(nothing), options);
    DataRow unlearned = calling("");
    unlearned.prompt[1]["weight"] = 0;
    EXPECT_FALSE(tokenize(unlearned, options).starts_with(refused));
  }
  options.sequence.chat_template =
      "{% for m in messages %}{{ '<|' + ('user' if m.role == 'tool' else m.role) + '|>' + "
      "(m.tool_calls[0].function.name if m.tool_calls else m.content) + '<|end|>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";
  for (const bool by_message : {false, true}) {
    options.message_by_message = by_message;
    EXPECT_EQ(tokenize(calling(""), options),
              "<|user|>a<|end|><|assistant|>[f<|end|>]<|user|>c<|end|><|assistant|>[d<|end|>]");
  }
}

TEST(ConversationBuilder, NamesTheFieldsThatTheTemplateDoesNotWrite) {
  static const Tokenizer tokenizer = testing::toy_tokenizer();
  const auto unwritten = [&](const DataRow& row, const std::string& more) {
    ConversationOptions options = toy_options();
    options.sequence.chat_template += more;
    const auto builder = ConversationBuilder::create(tokenizer, options);
    CHECK(builder.ok());
    std::vector<std::string> fields;
    for (const auto& [field, text] : builder->unwritten_fields(row)) {
      EXPECT_NE(text.find(field), std::string::npos) << text;
      EXPECT_NE(text.find("model.custom_chat_template"), std::string::npos) << text;
      EXPECT_TRUE(text.starts_with("f:3: ")) << text;
      fields.push_back(field);
    }
    return fields;
  };
  using Fields = std::vector<std::string>;
  DataRow row = calling("b");
  row.prompt[3]["reasoning_content"] = "e";
  row.tools = {"saw"};
  EXPECT_EQ(unwritten(row, ""), (Fields{"reasoning_content", "tool_calls", "tools"}));
  EXPECT_EQ(unwritten(row, "{{ tools }}"), (Fields{"reasoning_content", "tool_calls"}));
  EXPECT_EQ(unwritten(row, "{{ messages[-1].tool_calls }}{{ messages[-1].reasoning_content }}"),
            (Fields{"tools"}));
  row.tools = ordered_json::array();
  row.prompt = conversation({"user a", "assistant b"}).prompt;
  EXPECT_EQ(unwritten(row, ""), Fields{});
}

TEST(ConversationBuilder, AnswersOfWeightZeroAreReadAndNotLearned) {
  DataRow row = conversation({"user a", "assistant b", "user c", "assistant d"});
  row.prompt[1]["weight"] = 0;
  row.prompt[3]["weight"] = 1;
  ConversationOptions options = toy_options();
  for (const bool by_message : {false, true}) {
    options.message_by_message = by_message;
    EXPECT_EQ(tokenize(row, options),
              "<|user|>a<|end|><|assistant|>b<|end|><|user|>c<|end|><|assistant|>[d<|end|>]");
  }
  row.prompt[3]["weight"] = 0;
  EXPECT_EQ(tokenize(row), "f:3: nothing to learn: all messages of the assistant have weight 0");
}

}  // namespace
}  // namespace rl
