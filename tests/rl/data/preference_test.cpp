// Rows of preferences: the forms that they are stored in, their tokens, and what is said of rows
// that are wrong.
#include <gtest/gtest.h>

#include "rl/data/preference_builder.h"
#include "rl/data/preference_mapping.h"
#include "rl/data/row_mapping.h"
#include "rl/data/toy_preferences.h"
#include "tests/rl/data/test_files.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;

RowMapping mapping(PreferenceForm form = PreferenceForm::kPairs) {
  RowMapping mapping;
  mapping.preference = PreferenceMapping{};
  mapping.preference->form = form;
  return mapping;
}

runtime::Result<DataRow> read(const std::string& json,
                              PreferenceForm form = PreferenceForm::kPairs) {
  return map_row({.value = ordered_json::parse(json), .where = "f:7"}, mapping(form));
}

const ordered_json kQuestion = ordered_json::parse(R"([{"role": "user", "content": "q"}])");

TEST(PreferenceMapping, TextsStayTexts) {
  const auto row = read(R"({"prompt": "q", "chosen": "good", "rejected": "bad", "response": 3})");
  ASSERT_TRUE(row.ok()) << row.status().to_string();
  EXPECT_EQ(row->prompt, "q");
  EXPECT_EQ(row->preference->chosen, "good");
  EXPECT_EQ(row->preference->rejected, "bad");
  EXPECT_EQ(row->preference->margin, 0.0);
  EXPECT_FALSE(row->response);
  EXPECT_EQ(row->where, "f:7");
}

// Whole conversations, responses alone, a prompt as text: all are the same preference.
TEST(PreferenceMapping, MessagesMayRepeatThePrompt) {
  const std::string good = R"({"role": "assistant", "content": "good"})",
                    bad = R"({"role": "assistant", "content": "bad"})",
                    user = R"({"role": "user", "content": "q"})";
  for (
      const std::string& text : {
          R"({"prompt": [)" + user + R"(], "chosen": [)" + good + R"(], "rejected": [)" + bad +
              "]}",
          R"({"prompt": [)" + user + R"(], "chosen": [)" + user + "," + good +
              R"(], "rejected": [)" + user + "," + bad + "]}",
          R"({"prompt": [)" + user + R"(], "chosen": "good", "rejected": "bad"})",
          R"({"prompt": "q", "chosen": [)" + user + "," + good + R"(], "rejected": [)" + user +
              "," + bad + "]}",
          R"({"prompt": "q", "chosen": [)" + good + R"(], "rejected": [)" + bad + "]}",
          R"({"chosen": [)" + user + "," + good + R"(], "rejected": [)" + user + "," + bad + "]}",
          std::string(
              R"({"chosen": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "good"}], "rejected": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "bad"}]})"),
      }) {
    const auto row = read(text);
    ASSERT_TRUE(row.ok()) << text << "\n" << row.status().to_string();
    EXPECT_EQ(row->prompt, kQuestion) << text;
    EXPECT_EQ(row->preference->chosen, "good") << text;
    EXPECT_EQ(row->preference->rejected, "bad") << text;
  }
}

// Anthropic's hh-rlhf: two transcripts, of which the beginning is the prompt.
TEST(PreferenceMapping, TextsWithoutAPromptBeginWithIt) {
  const auto row = read(
      R"({"chosen": "\n\nHuman: q\n\nAssistant: I can", "rejected": "\n\nHuman: q\n\nAssistant: Ich nicht"})");
  ASSERT_TRUE(row.ok()) << row.status().to_string();
  EXPECT_EQ(row->prompt, "\n\nHuman: q\n\nAssistant: I");
  const auto split = read(R"({"chosen": "Assistant: yes", "rejected": "Assistant: no"})");
  EXPECT_EQ(split->prompt, "Assistant:");
  EXPECT_EQ(split->preference->chosen, " yes");
  EXPECT_EQ(read(R"({"chosen": "yes", "rejected": "no"})").status().message(),
            "f:7: 'chosen' and 'rejected' begin with nothing in common, and there is no 'prompt' "
            "(data.prompt_key)");
}

TEST(PreferenceMapping, MarginsAreGivenOrTheDifferenceOfScores) {
  const std::string pair = R"({"prompt": "q", "chosen": "good", "rejected": "bad", )";
  EXPECT_EQ(read(pair + R"("margin": 2})")->preference->margin, 2.0);
  EXPECT_EQ(read(pair + R"("chosen_score": 8.5, "rejected_score": 6})")->preference->margin, 2.5);
  EXPECT_EQ(read(pair + R"("score_chosen": 8.5, "score_rejected": 6})")->preference->margin, 2.5);
  EXPECT_EQ(read(pair + R"("chosen_score": 8.5})").status().message(),
            "f:7: 'chosen_score' and 'rejected_score' are needed both, or none");
  EXPECT_EQ(read(pair + R"("margin": "2"})").status().message(),
            "f:7: 'margin' must be a number, it is a string");
}

TEST(PreferenceMapping, SinglesHaveALabel) {
  const auto wanted =
      read(R"({"prompt": "q", "completion": "good", "label": true})", PreferenceForm::kSingles);
  ASSERT_TRUE(wanted.ok()) << wanted.status().to_string();
  EXPECT_EQ(wanted->preference->chosen, "good");
  EXPECT_FALSE(wanted->preference->is_pair());
  EXPECT_TRUE(wanted->preference->wanted);
  EXPECT_FALSE(
      read(
          R"({"prompt": "q", "completion": [{"role": "assistant", "content": "bad"}], "label": 0})",
          PreferenceForm::kSingles)
          ->preference->wanted);
  EXPECT_TRUE(
      read(R"({"prompt": "q", "chosen": "good", "rejected": "bad"})", PreferenceForm::kSingles)
          ->preference->is_pair());
  EXPECT_EQ(
      read(R"({"prompt": "q", "completion": "good", "label": "yes"})", PreferenceForm::kSingles)
          .status()
          .message(),
      "f:7: 'label' must be true or false (or 1 or 0): whether the response is wanted; it is "
      "\"yes\"");
}

TEST(PreferenceMapping, MistakesNameRowAndColumn) {
  const auto message = [](const std::string& text, PreferenceForm form = PreferenceForm::kPairs) {
    return read(text, form).status().message();
  };
  EXPECT_EQ(message(R"({"prompt": "q", "chosen": "good"})"),
            "f:7: no key 'rejected' (data.columns.rejected); it has 'prompt', 'chosen'");
  EXPECT_EQ(message(R"({"prompt": "q", "chosen": null, "rejected": "bad"})"),
            "f:7: 'chosen' (data.columns.chosen) is null");
  EXPECT_EQ(message(R"({"prompt": "q", "chosen": "same", "rejected": "same"})"),
            "f:7: 'chosen' and 'rejected' are equal: there is nothing to prefer");
  EXPECT_EQ(message(R"({"prompt": "q", "chosen": 4, "rejected": "bad"})"),
            "f:7: 'chosen' must be a text or a list of messages, it is a number");
  EXPECT_EQ(
      message(
          R"({"prompt": "q", "chosen": "good", "rejected": [{"role": "assistant", "content": "bad"}]})"),
      "f:7: 'chosen' and 'rejected' must both be texts, or both lists of messages");
  EXPECT_EQ(
      message(
          R"({"prompt": "another", "chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]})"),
      "f:7: the messages of the response do not begin with 'prompt': leave the prompt out of them, "
      "or leave 'prompt' out");
  EXPECT_EQ(message(R"({"prompt": "q", "label": true})", PreferenceForm::kSingles),
            "f:7: no key 'completion' (data.columns.completion); it has 'prompt', 'label'");
  EXPECT_EQ(message(R"({"prompt": "q", "chosen": "", "rejected": "bad"})"),
            "f:7: 'chosen' is empty");
}

runtime::Result<PreferenceTokens> tokens(const std::string& json, std::int64_t most = 100,
                                         Truncation cut = Truncation::kError) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  SequenceOptions options;
  options.chat_template = toy_chat_template();
  options.tokens_max = most;
  options.truncation = cut;
  const auto builder = PreferenceBuilder::create(tokenizer, options);
  CHECK(builder.ok());
  const auto row = read(json);
  if (!row.ok()) return row.status();
  return builder->tokenize(*row);
}

const std::string kPair =
    R"({"prompt": [{"role": "user", "content": "ab"}], "chosen": "cd", "rejected": "e"})";

TEST(PreferenceBuilder, PromptIsRenderedAndResponsesFollow) {
  const auto made = tokens(kPair);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(made->prompt, (Ids{2, 5, 6, 1, 3}));
  EXPECT_EQ(made->chosen, (Ids{7, 8}));  // a tokenizer.json alone names no end of sequence
  EXPECT_EQ(made->rejected, (Ids{9}));
  // Several messages are what the template writes behind the prompt.
  const auto turns = tokens(R"({"prompt": [{"role": "user", "content": "ab"}],
      "chosen": [{"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}, {"role": "assistant", "content": "e"}], "rejected": [{"role": "assistant", "content": "e"}]})");
  ASSERT_TRUE(turns.ok()) << turns.status().to_string();
  EXPECT_EQ(turns->chosen, (Ids{7, 1, 2, 8, 1, 3, 9, 1}));
}

TEST(PreferenceBuilder, ToolsAreWrittenBeforePromptAndResponse) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  const auto builder = PreferenceBuilder::create(
      tokenizer,
      {.chat_template = "{% if tools %}{{ tools[0].name }}{% endif %}" + toy_chat_template()});
  ASSERT_TRUE(builder.ok()) << builder.status().to_string();
  const auto messages = read(R"({"prompt": [{"role": "user", "content": "ab"}], "chosen": [
      {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"},
      {"role": "assistant", "content": "e"}], "rejected": [
      {"role": "assistant", "content": "e"}], "tools": [{"name": "c"}]})");
  ASSERT_TRUE(messages.ok()) << messages.status().to_string();
  const auto made = builder->tokenize(*messages);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(made->prompt, (Ids{7, 2, 5, 6, 1, 3}));
  EXPECT_EQ(made->chosen, (Ids{7, 1, 2, 8, 1, 3, 9, 1}));
  EXPECT_TRUE(builder->unwritten_fields(*messages).empty());
}

TEST(PreferenceBuilder, TooLongIsRefusedOrCut) {
  EXPECT_EQ(tokens(kPair, 6).status().message(),
            "f:7: prompt and response have 7 tokens, data.max_length is 6: raise it, or set "
            "data.truncation=left|right");
  EXPECT_TRUE(tokens(kPair, 7).ok());
  const auto left = tokens(kPair, 6, Truncation::kLeft);
  EXPECT_EQ(left->prompt, (Ids{5, 6, 1, 3}));
  EXPECT_EQ(left->chosen, (Ids{7, 8}));
  const auto right = tokens(kPair, 6, Truncation::kRight);
  EXPECT_EQ(right->prompt, (Ids{2, 5, 6, 1, 3}));
  EXPECT_EQ(right->chosen, (Ids{7}));
  EXPECT_EQ(tokens(kPair, 5, Truncation::kRight).status().message(),
            "f:7: the prompt has 5 tokens and leaves no room for a response in data.max_length=5: "
            "raise it (data.truncation=left cuts prompts first)");
  EXPECT_EQ(tokens(R"({"prompt": "ab", "chosen": "cd", "rejected": "ce"})", 3, Truncation::kRight)
                .status()
                .message(),
            "f:7: both responses are the same tokens once they are cut to data.max_length=3: raise "
            "it (data.truncation=left cuts prompts first)");
}

TEST(ToyPreferences, TheRightAnswerIsChosen) {
  const ToyOptions options{
      .task = ToyTask::kCopy, .rows = 200, .letters = 2, .length = 3, .seed = 4};
  std::vector<DataRow> rows = make_toy_dataset(options).rows();
  std::vector<DataRow> singles = rows;
  add_toy_preferences(rows, options, PreferenceForm::kPairs);
  add_toy_preferences(singles, options, PreferenceForm::kSingles);
  std::int64_t wanted = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].preference->chosen, rows[i].ground_truth);
    EXPECT_NE(rows[i].preference->rejected, rows[i].ground_truth);
    const std::string wrong = rows[i].preference->rejected;
    EXPECT_EQ(wrong.find_first_not_of("ab"), std::string::npos) << wrong;
    EXPECT_EQ(singles[i].preference->wanted,
              singles[i].preference->chosen == singles[i].ground_truth);
    wanted += singles[i].preference->wanted ? 1 : 0;
  }
  EXPECT_EQ(wanted, 100);
}

TEST(PreferenceBuilder, CallsThatTheTemplateDoesNotWriteAreNoEmptyResponse) {
  const std::string called = R"([{"role": "assistant", "content": null, "tool_calls":
      [{"type": "function", "function": {"name": "f", "arguments": {}}}]}])";
  const auto made = tokens(R"({"prompt": [{"role": "user", "content": "ab"}], "chosen": )" +
                           called + R"(, "rejected": [{"role": "assistant", "content": "e"}]})");
  EXPECT_TRUE(made.status().message().starts_with(
      "f:7: the last message of a response has 'tool_calls' and no text, and the chat template "
      "does not write the calls"))
      << made.status().message();
}

TEST(PreferenceBuilder, NamesTheFieldsThatTheTemplateDoesNotWrite) {
  const Tokenizer tokenizer = testing::toy_tokenizer();
  const auto builder = PreferenceBuilder::create(tokenizer, {.chat_template = toy_chat_template()});
  ASSERT_TRUE(builder.ok()) << builder.status().to_string();
  const std::string call =
      R"("tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}])";
  const auto fields = [&](const std::string& prompt, const std::string& chosen) {
    const auto row = read(R"({"prompt": [{"role": "user", "content": "ab"})" + prompt +
                          R"(], "chosen": [{"role": "assistant", )" + chosen +
                          R"(}], "rejected": [{"role": "assistant", "content": "e"}]})");
    std::string names;
    for (const auto& [field, text] : builder->unwritten_fields(*row)) {
      names += field + " ";
      EXPECT_TRUE(text.starts_with("f:7: message 2 has '" + field)) << text;
      EXPECT_NE(text.find("set model.custom_chat_template"), std::string::npos) << text;
    }
    return names;
  };
  const std::string plain = R"("content": "c")";
  EXPECT_EQ(fields("", plain), "");
  EXPECT_EQ(fields("", plain + ", " + call), "tool_calls ");
  EXPECT_EQ(fields("", plain + R"(, "reasoning_content": "d")"), "reasoning_content ");
  EXPECT_EQ(fields(R"(, {"role": "assistant", "content": null, )" + call + "}", plain),
            "tool_calls ");
}

}  // namespace
}  // namespace rl
