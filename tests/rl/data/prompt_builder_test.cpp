#include "rl/data/prompt_builder.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "rl/data/toy.h"
#include "tests/rl/cached_smollm2.h"
#include "tests/rl/data/test_files.h"
#include "tests/rl/tokenizer/tokenizer_fixtures.h"

namespace rl {
namespace {

using Ids = std::vector<std::int32_t>;

PromptOptions toy_prompt_options() {
  PromptOptions options;
  options.chat_template = toy_chat_template();
  return options;
}

DataRow plain_row(const std::string& text) {
  DataRow row;
  row.prompt = text;
  row.where = "f:3";
  return row;
}

TEST(PromptBuilder, TheToyTokenizerGivesOneIdPerCharacter) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), toy_vocab_size());
  EXPECT_EQ(tokenizer.token_to_id("<|end|>"), kToyEndId);
  EXPECT_EQ(tokenizer.token_to_id("<|pad|>"), kToyPadId);
  const auto ids = tokenizer.encode(toy_characters(), false);
  ASSERT_TRUE(ids.ok());
  ASSERT_EQ(ids->size(), toy_characters().size());
  for (std::size_t i = 0; i < ids->size(); ++i)
    EXPECT_EQ((*ids)[i], static_cast<std::int32_t>(4 + i));
  EXPECT_EQ(tokenizer.decode(*ids, true), toy_characters());
}

TEST(PromptBuilder, RendersAndEncodesToyChats) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  const auto builder = PromptBuilder::create(tokenizer, toy_prompt_options());
  ASSERT_TRUE(builder.ok()) << builder.status().to_string();
  const Dataset dataset = make_toy_dataset({});
  const DataRow& row = dataset.row(0);
  const std::string text = *builder->text(row);
  EXPECT_EQ(text,
            "<|user|>" + row.prompt[0].at("content").get<std::string>() + "<|end|><|assistant|>");
  const auto ids = builder->ids(row);
  ASSERT_TRUE(ids.ok()) << ids.status().to_string();
  EXPECT_EQ(ids->size(), 3 + row.prompt[0].at("content").get<std::string>().size());
  EXPECT_EQ(ids->front(), *tokenizer.token_to_id("<|user|>"));
  EXPECT_EQ(ids->back(), *tokenizer.token_to_id("<|assistant|>"));
  EXPECT_EQ(tokenizer.decode(*ids, false), text);
}

TEST(PromptBuilder, TruncatesByPolicy) {
  const Ids ids = {1, 2, 3, 4, 5};
  EXPECT_EQ(*truncate(ids, 5, Truncation::kError), ids);
  EXPECT_EQ(*truncate(ids, 3, Truncation::kLeft), (Ids{3, 4, 5}));
  EXPECT_EQ(*truncate(ids, 3, Truncation::kRight), (Ids{1, 2, 3}));
  EXPECT_EQ(*truncate(ids, 3, Truncation::kMiddle), (Ids{1, 4, 5}));
  EXPECT_EQ(*truncate(ids, 4, Truncation::kMiddle), (Ids{1, 2, 4, 5}));
  EXPECT_FALSE(truncate(ids, 4, Truncation::kError).ok());
  EXPECT_FALSE(parse_truncation("centre").ok());
}

TEST(PromptBuilder, OverlongPromptsAreErrorsOrFiltered) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  PromptOptions options = toy_prompt_options();
  options.prompt_tokens_max = 4;
  const auto strict = PromptBuilder::create(tokenizer, options);
  EXPECT_EQ(*strict->ids(plain_row("abcd")), (Ids{5, 6, 7, 8}));
  EXPECT_EQ(strict->ids(plain_row("abcde")).status().message(),
            "f:3: the prompt has 5 tokens, data.max_prompt_length is 4: raise it, or set "
            "data.truncation=left|right|middle, or "
            "data.filter_overlong_prompts=true");
  EXPECT_EQ(strict->filter(Dataset({plain_row("abcde")}))->size(), 1);
  options.filter_overlong = true;
  const auto filtering = PromptBuilder::create(tokenizer, options);
  std::int64_t dropped = -1;
  const auto kept = filtering->filter(Dataset({plain_row("abcde"), plain_row("ab")}), &dropped);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->size(), 1);
  EXPECT_EQ(dropped, 1);
  EXPECT_FALSE(filtering->filter(Dataset({plain_row("abcde")})).ok());
  EXPECT_FALSE(filtering->ids(plain_row("")).ok());
}

TEST(PromptBuilder, ChatsNeedATemplate) {
  const Tokenizer tokenizer = testing::toy_tokenizer();  // a bare tokenizer.json has none
  const auto builder = PromptBuilder::create(tokenizer, PromptOptions{});
  ASSERT_TRUE(builder.ok());
  const Dataset dataset = make_toy_dataset({});
  EXPECT_NE(builder->ids(dataset.row(0))
                .status()
                .message()
                .find("toy:1: the prompt is a chat, and the model has no chat template"),
            std::string::npos);
  PromptOptions options;
  options.chat_template = "{% if %}";
  EXPECT_FALSE(PromptBuilder::create(tokenizer, options).ok());
  options.chat_template = "{{ raise_exception('no ' + messages[0].role) }}";
  EXPECT_EQ(PromptBuilder::create(tokenizer, options)->ids(dataset.row(0)).status().message(),
            "toy:1: chat template: TemplateError: no user");
}

// A call without content is null for templates that ask, and never the word.
TEST(PromptBuilder, ACallWithoutContentIsNotWrittenAsNone) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  DataRow row;
  row.where = "f:3";
  row.prompt = nlohmann::ordered_json::parse(R"([
      {"role": "user", "content": "None?"},
      {"role": "assistant", "content": null,
       "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]},
      {"role": "tool", "content": "5"}])");
  const auto text = [&](const std::string& chat_template) {
    const auto builder = PromptBuilder::create(
        tokenizer, {.chat_template = "{% for m in messages %}" + chat_template + "{% endfor %}"});
    CHECK(builder.ok());
    const auto rendered = builder->text(row);
    return rendered.ok() ? *rendered : rendered.status().message();
  };
  EXPECT_EQ(text("[{{ m.content }}]"), "[None?][][5]");
  EXPECT_EQ(text("[{{ m['content'] | trim }}]"), "[None?][][5]");
  EXPECT_EQ(text("[{% if m.content is none %}{{ m.tool_calls[0].function.name }}{% else %}"
                 "{{ m.content }}{% endif %}]"),
            "[None?][f][5]");
  // SmolLM2's own, which joins texts, where null is an error.
  const char* const joins = "{{ '<' + m['role'] + '>' + m['content'] + '\\n' }}";
  EXPECT_EQ(text(joins), "<user>None?\n<assistant>\n<tool>5\n");
  EXPECT_EQ(text("{% if m.content is none %}[{{ m.tool_calls[0].function.name }}]{% else %}"
                 "{{ '[' + m.content + ']' }}{% endif %}"),
            "[None?][f][5]");
  row.prompt[1].erase("content");
  EXPECT_EQ(text(joins), "<user>None?\n<assistant>\n<tool>5\n");
  EXPECT_EQ(text("[{% if m.content is defined %}{{ m.content }}{% else %}calls{% endif %}]"),
            "[None?][calls][5]");
  EXPECT_NE(text("{{ 1 + m.content }}").find("f:3"), std::string::npos)
      << "what fails with a text as well is told as it is";
  row.prompt[1]["content"] = nullptr;
  EXPECT_EQ(text("[{% if m.content %}{{ m.content }}{% endif %}]"), "[None?][][5]");
}

TEST(PromptBuilder, AToolThatARowSelectsIsAName) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  const auto builder = PromptBuilder::create(
      tokenizer, {.chat_template = "{% for t in tools %}{{ t.function.name }}{% endfor %}",
                  .tools = nlohmann::ordered_json::parse(
                      R"([{"function": {"name": "f"}}, {"function": {"name": "g"}}])")});
  ASSERT_TRUE(builder.ok()) << builder.status().to_string();
  DataRow row = make_toy_dataset({}).row(0);
  EXPECT_EQ(*builder->text(row), "fg");
  row.extra = nlohmann::ordered_json{{"tool_selection", {"g"}}};
  EXPECT_EQ(*builder->text(row), "g");
  row.extra["tool_selection"][0] = nullptr;
  EXPECT_EQ(builder->text(row).status().message(),
            "toy:1: extra_info.tool_selection: tool 1 must be a name, it is null");
}

TEST(PromptBuilder, ARowsToolsReachTheTemplateWhereNoneAreConfigured) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  PromptOptions options{
      .chat_template = "{% if tools %}{% for t in tools %}{{ t.name }}{% endfor %}{% endif %}"};
  DataRow row = make_toy_dataset({}).row(0);
  const auto builder = PromptBuilder::create(tokenizer, options);
  EXPECT_EQ(*builder->text(row), "");
  row.tools = nlohmann::ordered_json::parse(R"([{"name": "f"}])");
  EXPECT_EQ(*builder->text(row), "f");
  EXPECT_TRUE(builder->unwritten_fields(row).empty());
  const auto deaf = PromptBuilder::create(tokenizer, toy_prompt_options());
  EXPECT_TRUE(deaf->unwritten_fields(row).at("tools").starts_with(
      "toy:1: it has tools, which the chat template does not write"));
  options.tools = nlohmann::ordered_json::parse(R"([{"name": "g", "function": {"name": "g"}}])");
  const auto configured = PromptBuilder::create(tokenizer, options);
  EXPECT_EQ(*configured->text(row), "g") << "only these can be called";
  EXPECT_TRUE(configured->unwritten_fields(row).at("tools").starts_with(
      "toy:1: its tools are passed over"));
}

TEST(PromptBuilder, NamesTheFieldsThatTheTemplateDoesNotWrite) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  DataRow row;
  row.where = "f:1";
  row.prompt = nlohmann::ordered_json::parse(
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null,
           "tool_calls": [{"type": "function", "function": {"name": "f"}}]},
          {"role": "user", "content": "b"}])");
  const auto names = [&](const std::string& more) {
    PromptOptions options;
    options.chat_template = toy_chat_template() + more;
    const auto builder = PromptBuilder::create(tokenizer, options);
    EXPECT_TRUE(builder.ok()) << builder.status().to_string();
    return builder->unwritten_fields(row);
  };
  const auto unwritten = names("");
  ASSERT_EQ(unwritten.size(), 1u);
  EXPECT_TRUE(unwritten.at("tool_calls").starts_with("f:1: message 2 has 'tool_calls', which"));
  EXPECT_NE(unwritten.at("tool_calls").find("actor_rollout_ref.model.custom_chat_template"),
            std::string::npos);
  EXPECT_TRUE(names("{{ messages[-1].tool_calls }}").empty());
}

TEST(PromptBuilder, OptionsComeFromTheConfiguration) {
  const auto config = Config::load({std::nullopt,
                                    {"data.max_prompt_length=7", "data.truncation=left",
                                     "+data.apply_chat_template_kwargs.enable_thinking=false"}});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const auto options = PromptOptions::from_config(*config);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->prompt_tokens_max, 7);
  EXPECT_EQ(options->truncation, Truncation::kLeft);
  EXPECT_EQ(options->template_variables.at("enable_thinking"), false);
}

TEST(PromptBuilder, RendersSmolLm2sTemplate) {
  const auto file = testing::cached_smollm2();
  if (file.empty()) GTEST_SKIP() << "SmolLM2 is not in the cache: .ci/fetch_wheels.sh model";
  const auto tokenizer = Tokenizer::load(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  const auto builder = PromptBuilder::create(*tokenizer, PromptOptions{});
  ASSERT_TRUE(builder.ok()) << builder.status().to_string();
  DataRow row;
  row.prompt = nlohmann::ordered_json::array({{{"role", "user"}, {"content", "What is 2 + 2?"}}});
  const auto text = builder->text(row);
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  EXPECT_EQ(*text,
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n"
            "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(builder->ids(row).ok());
}

}  // namespace
}  // namespace rl
