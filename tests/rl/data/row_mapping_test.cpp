#include "rl/data/row_mapping.h"

#include <gtest/gtest.h>

#include "rl/data/dataset.h"
#include "tests/rl/data/test_files.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

runtime::Result<Dataset> load_by_keys(std::vector<std::string> overrides) {
  const auto config = Config::load({std::nullopt, std::move(overrides)});
  if (!config.ok()) return config.status();
  const auto options = dataset_options(*config, Split::kTrain);
  if (!options.ok()) return options.status();
  return Dataset::load(**options);
}

TEST(RowMapping, Gsm8kAsItIsPublished) {
  const auto rows = load_by_keys({"data.train_files=" + testing::data_file("gsm8k.jsonl"),
                                  R"(data.prompt_template='Question: {question}\nAnswer:')",
                                  "data.columns.response=answer", "data.answer_after='####'"});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  ASSERT_EQ(rows->size(), 4);
  EXPECT_EQ(rows->row(3).prompt, "Question: What is 3+3?\nAnswer:");
  EXPECT_EQ(rows->row(3).ground_truth, "6");
  EXPECT_EQ(rows->row(3).response, "3+3=<<3+3=6>>6\n#### 6");
  const auto chat = load_by_keys({"data.train_files=" + testing::data_file("gsm8k.jsonl"),
                                  "data.columns.prompt=question", "data.columns.answer=answer",
                                  "data.prompt_form=chat", "data.system_prompt=Think."});
  ASSERT_TRUE(chat.ok()) << chat.status().to_string();
  EXPECT_EQ(
      chat->row(1).prompt,
      ordered_json::parse(
          R"([{"role": "system", "content": "Think."}, {"role": "user", "content": "What is 1+1?"}])"));
}

TEST(RowMapping, Oasst1TreesBecomeChats) {
  const auto rows = load_by_keys(
      {"data.train_files=" + testing::data_file("oasst1.parquet"), "data.conversations=tree"});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  ASSERT_EQ(rows->size(), 2);
  EXPECT_EQ(rows->row(0).prompt, ordered_json::parse(R"([{"role": "user", "content": "Hi"}])"));
  EXPECT_EQ(rows->row(0).response, "Good");
  EXPECT_EQ(
      rows->row(1).prompt,
      ordered_json::parse(
          R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Good"}, {"role": "user", "content": "More?"}])"));
  EXPECT_EQ(rows->row(1).response, "Yes");
  const testing::TempFile circle(
      "{\"id\":\"a\",\"parent_id\":\"b\",\"role\":\"user\",\"text\":\"x\"}\n{\"id\":\"b\",\"parent_"
      "id\":\"a\",\"role\":\"assistant\",\"text\":\"y\"}\n");
  EXPECT_EQ(load_by_keys({"data.train_files=" + circle.path(), "data.conversations=tree"})
                .status()
                .message(),
            circle.path() + ":1: its parents go round in a circle");
  const testing::TempFile orphan(
      "{\"id\":\"a\",\"parent_id\":\"b\",\"role\":\"user\",\"text\":\"x\"}\n");
  EXPECT_EQ(load_by_keys({"data.train_files=" + orphan.path(), "data.conversations=tree"})
                .status()
                .message(),
            orphan.path() + ":1: its parent 'b' is not in the data: give all files of the trees");
}

TEST(RowMapping, ConversationsEndWithTheResponse) {
  const testing::TempFile chats(
      R"({"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]})"
      "\n");
  const auto rows = load_by_keys({"data.train_files=" + chats.path(), "data.conversations=messages",
                                  "data.prompt_key=conversations"});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  EXPECT_EQ(rows->row(0).prompt, ordered_json::parse(R"([{"role": "user", "content": "q"}])"));
  EXPECT_EQ(rows->row(0).response, "a");
  const testing::TempFile open(R"({"m":[{"role":"user","content":"q"}]})"
                               "\n");
  EXPECT_EQ(load_by_keys({"data.train_files=" + open.path(), "data.conversations=messages",
                          "data.prompt_key=m"})
                .status()
                .message(),
            open.path() +
                ":1: 'm': the last of two or more messages must be the assistant's "
                "(data.conversations=messages)");
}

TEST(RowMapping, MistakesNameRowAndColumn) {
  const std::string gsm8k = "data.train_files=" + testing::data_file("gsm8k.jsonl"),
                    at = testing::data_file("gsm8k.jsonl") + ":1: ";
  EXPECT_EQ(load_by_keys({gsm8k, "data.columns.prompt=q"}).status().message(),
            at + "no key 'q' (data.prompt_key); it has 'question', 'answer'");
  EXPECT_EQ(load_by_keys({gsm8k, "data.columns.prompt=question", "data.columns.answer=a"})
                .status()
                .message(),
            at + "no key 'a' (data.columns.answer); it has 'question', 'answer'");
  EXPECT_EQ(load_by_keys({gsm8k, "data.columns.prompt=question", "data.answer_after=THE"})
                .status()
                .message(),
            at + "the answer has no 'THE' (data.answer_after)");
  EXPECT_EQ(load_by_keys({gsm8k, "data.prompt_template='{q}'"}).status().message(),
            at + "data.prompt_template: no key 'q'; the row has 'question', 'answer'");
  EXPECT_EQ(load_by_keys({gsm8k, "data.prompt_template='{q'"}).status().message(),
            at + "data.prompt_template: a '{' without its '}': write '{{' for a brace");
  EXPECT_EQ(load_by_keys({gsm8k, "data.columns.prompt=question", "data.system_prompt=x"})
                .status()
                .message(),
            at + "data.system_prompt needs a chat: set data.prompt_form=chat");
  EXPECT_FALSE(
      load_by_keys({gsm8k, "data.columns.prompt=question", "data.prompt_template=x"}).ok());
}

TEST(RowMapping, RowsWithMoreThanTextAreRefused) {
  const auto map = [](const std::string& row, std::vector<std::string> overrides = {}) {
    const auto mapping =
        RowMapping::from_config(*Config::load({std::nullopt, std::move(overrides)}));
    return map_row({ordered_json::parse(row), "f:1"}, *mapping).status();
  };
  EXPECT_EQ(map(R"({"prompt": "<image>What?", "images": [{"bytes": "x"}]})").message(),
            "f:1: it has 'images', and only text is read: take rows without, or train on their "
            "text alone by data.image_key=null (video_key, audio_key)");
  EXPECT_EQ(map(R"({"prompt": "a", "clips": ["x.mp4"]})", {"data.video_key=clips"}).code(),
            runtime::ErrorCode::kUnimplemented);
  EXPECT_EQ(map(R"({"prompt": "a", "audios": "x.wav"})").code(),
            runtime::ErrorCode::kUnimplemented);
  EXPECT_EQ(
      map(R"({"prompt": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}]})")
          .message(),
      "f:1: 'prompt': message 1 has a part of type \"image\", and only text is read");
  for (const char* row :
       {R"({"prompt": "a", "images": []})",
        R"({"prompt": "a", "images": null, "videos": "", "clips": ["x"]})",
        R"({"prompt": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]})"}) {
    EXPECT_TRUE(map(row).ok()) << row << ": " << map(row).message();
  }
  EXPECT_TRUE(map(R"({"prompt": "a", "images": ["x"]})", {"data.image_key=null"}).ok());
}

DataRow mapped(const char* row) {
  const auto found = map_row({.value = ordered_json::parse(row), .where = "t:1"}, {});
  EXPECT_TRUE(found.ok()) << found.status().to_string();
  return found.ok() ? *found : DataRow();
}

// Files of several sources have the columns of all, with nulls.
TEST(RowMapping, AColumnOfNullIsNoAnswer) {
  EXPECT_EQ(mapped(R"({"prompt": "b", "ground_truth": null, "answer": "7"})").ground_truth, "7");
  EXPECT_EQ(
      mapped(R"({"prompt": "b", "ground_truth": null, "answer": null, "target": 8})").ground_truth,
      "8");
  EXPECT_EQ(mapped(R"({"prompt": "b", "reward_model": {"ground_truth": null}, "solution": "9"})")
                .ground_truth,
            "9");
  EXPECT_EQ(mapped(R"({"prompt": "b", "ground_truth": "", "answer": "7"})").ground_truth, "");
  EXPECT_EQ(mapped(R"({"prompt": "b", "ground_truth": ""})").answerless, "");
  EXPECT_EQ(mapped(R"({"prompt": "b", "ground_truth": null, "reply": "7"})").answerless,
            "'prompt', 'reply' (and null in 'ground_truth')");
}

TEST(RowMapping, RolesOfShareGpt) {
  EXPECT_EQ(mapped(R"({"prompt": [{"from": "system", "value": "s"}, {"from": "human", "value": "h"},
                            {"from": "chatgpt", "value": "c"}, {"from": "bing", "value": "b"},
                            {"from": "bard", "value": "d"}, {"from": "gpt", "value": "g"},
                            {"from": "observation", "value": "o"}]})")
                .prompt,
            ordered_json::parse(
                R"([{"role": "system", "content": "s"}, {"role": "user", "content": "h"},
              {"role": "assistant", "content": "c"}, {"role": "assistant", "content": "b"},
              {"role": "assistant", "content": "d"}, {"role": "assistant", "content": "g"},
              {"role": "tool", "content": "o"}])"));
  EXPECT_EQ(
      mapped(
          R"({"prompt": [{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"}]})")
          .prompt,
      ordered_json::parse(
          R"([{"role": "assistant", "content": "", "tool_calls": [
              {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]}])"));
  const auto refused = [](const char* messages) {
    const std::string row = std::string(R"({"prompt": )") + messages + "}";
    return map_row({.value = ordered_json::parse(row), .where = "t:1"}, {}).status().message();
  };
  EXPECT_NE(refused(R"([{"from": "claude", "value": "x"}])").find("message 1 is from 'claude'"),
            std::string::npos);
  EXPECT_NE(refused(R"([{"from": "function_call", "value": "{}"}])").find("not a call with a name"),
            std::string::npos);
}

TEST(RowMapping, AColumnWithoutCallsCallsNoTool) {
  const auto refused = [](const std::string& rest) {
    const auto found =
        map_row({.value = ordered_json::parse(R"({"prompt": [{"role": "assistant")" + rest + "}]}"),
                 .where = "t:1"},
                {});
    return found.status().message();
  };
  for (const char* none : {"null", "[]", "{}", "\"\""}) {
    const std::string calls = std::string(", \"tool_calls\": ") + none;
    EXPECT_EQ(refused(", \"content\": null" + calls),
              "t:1: 'prompt': message 1: 'content' must be a text or a list of parts, it is null");
    EXPECT_EQ(refused(calls), "t:1: 'prompt': message 1 has no 'content'");
  }
  EXPECT_EQ(refused(R"(, "content": null, "tool_calls": [{"function": {"name": "f"}}])"), "");
  EXPECT_EQ(refused(R"(, "content": [{"type": "text", "text": null}])"),
            "t:1: 'prompt': message 1: the 'text' of a part must be a text, it is null");
}

TEST(RowMapping, ScoredRowsHaveAResponse) {
  const auto scored = map_scored_row(
      {.value = ordered_json::parse(R"({"response": "r", "answer": 7, "extra_info": {"i": 1}})"),
       .where = "t:1"},
      {});
  ASSERT_TRUE(scored.ok()) << scored.status().to_string();
  EXPECT_EQ(scored->response, "r");
  EXPECT_EQ(scored->ground_truth, "7");
  EXPECT_EQ(scored->extra, ordered_json::parse(R"({"i": 1})"));
  EXPECT_EQ(map_scored_row({.value = ordered_json::parse(R"({"answer": 7})"), .where = "t:1"}, {})
                .status()
                .message(),
            "t:1: no key 'response' (data.columns.response); it has 'answer'");
}

TEST(RowMapping, TemplatesHaveBracesAndEscapes) {
  EXPECT_EQ(*fill_template(R"({{{a}}} \n\\{b})", {{"a", "x{y}"}, {"b", 5}}, "f:1"), "{x{y}} \n\\5");
}

std::string mapped_conversation(const std::string& rest, ordered_json* messages = nullptr,
                                const std::string& system_prompt = "") {
  RowMapping mapping;
  mapping.messages = "conversations";
  mapping.system_prompt = system_prompt;
  const auto row =
      map_row({.value = ordered_json::parse(R"({"conversations": [)" + rest + "}"), .where = "t:1"},
              mapping);
  if (row.ok() && messages != nullptr) *messages = row->prompt;
  return row.status().message();
}

TEST(RowMapping, TheSystemColumnIsTheConversationsSystemMessage) {
  const std::string turns = R"({"from": "human", "value": "x"}, {"from": "gpt", "value": "z"}])";
  const std::string own = R"({"from": "system", "value": "S"}, )";
  ordered_json messages;
  for (const char* given : {"", "default"}) {
    EXPECT_EQ(mapped_conversation(turns + R"(, "system": "S")", &messages, given), "");
    ASSERT_EQ(messages.size(), 3u);
    EXPECT_EQ(messages[0], (ordered_json{{"role", "system"}, {"content", "S"}}));
  }
  EXPECT_EQ(mapped_conversation(turns + R"(, "system": "")", &messages, "default"), "");
  EXPECT_EQ(messages[0]["content"], "default");
  EXPECT_EQ(mapped_conversation(own + turns + R"(, "system": "S")", &messages), "");
  EXPECT_EQ(messages.size(), 3u);
  EXPECT_EQ(mapped_conversation(own + turns + R"(, "system": "T")"),
            "t:1: 'system' is another text than the system message in 'conversations': keep one of "
            "them");
  EXPECT_EQ(mapped_conversation(turns + R"(, "system": 5)"),
            "t:1: 'system' must be a text, the conversation's system message, it is a number");
}

TEST(RowMapping, WeightsAreZeroOrOne) {
  const auto weighed = [](const std::string& weight) {
    return mapped_conversation(R"({"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "weight": )" +
                               weight + "}]");
  };
  for (const char* weight : {"0", "1", "1.0", "null"}) EXPECT_EQ(weighed(weight), "") << weight;
  for (const char* weight : {"2", "0.5", "-1", "\"0\"", "true"})
    EXPECT_TRUE(
        weighed(weight).starts_with("t:1: 'conversations' (data.messages_key): message 2: "
                                    "'weight' must be 1 (learned) or 0 (not learned)"))
        << weighed(weight);
}

TEST(RowMapping, ShareGptMessagesKeepWhatElseTheyHave) {
  ordered_json messages;
  EXPECT_EQ(mapped_conversation(R"({"from": "human", "value": "x"},
      {"from": "gpt", "value": "no", "weight": 0, "reasoning_content": "r"},
      {"from": "function_call", "value": "{\"name\": \"f\"}", "weight": 0},
      {"from": "gpt", "value": "z", "weight": 1}])",
                                &messages),
            "");
  EXPECT_EQ(
      messages[1],
      (ordered_json{
          {"role", "assistant"}, {"content", "no"}, {"weight", 0}, {"reasoning_content", "r"}}));
  EXPECT_EQ(messages[2].at("weight"), 0);
  EXPECT_EQ(messages[3].at("weight"), 1);
  EXPECT_NE(mapped_conversation(R"({"from": "gpt", "value": "no", "weight": 2}])").find("'weight'"),
            std::string::npos);
}

TEST(RowMapping, AFunctionCallIsTheOneToolCall) {
  const std::string begin = R"({"role": "user", "content": "a"}, {"role": "assistant", )";
  const ordered_json calls = ordered_json::parse(
      R"([{"type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}])");
  const std::string call = R"("function_call": {"name": "f", "arguments": "{\"x\": 1}"})";
  ordered_json messages;
  for (const char* content : {"null", "\"b\""}) {
    EXPECT_EQ(mapped_conversation(begin + R"("content": )" + content + ", " + call +
                                      R"(}, {"role": "function", "name": "f", "content": "c"}])",
                                  &messages),
              "");
    EXPECT_EQ(messages[1].at("tool_calls"), calls);
    EXPECT_FALSE(messages[1].contains("function_call"));
    EXPECT_EQ(messages[2].at("role"), "tool");
  }
  for (const char* none : {"null", "{}", R"({"name": null, "arguments": null})"}) {
    EXPECT_EQ(mapped_conversation(begin + R"("content": "b", "function_call": )" + none + "}]",
                                  &messages),
              "");
    EXPECT_FALSE(messages[1].contains("tool_calls"));
  }
  EXPECT_NE(mapped_conversation(begin + R"("content": null, "function_call": {"x": 1}}])")
                .find("message 2: 'function_call' is not a call with a name and arguments"),
            std::string::npos);
  EXPECT_NE(mapped_conversation(begin + call + R"(, "tool_calls": [{"function": {"name": "f"}}]}])")
                .find("message 2 has 'function_call' and 'tool_calls'"),
            std::string::npos);
}

TEST(RowMapping, ToolsAreAListOfObjectsOrItsText) {
  const auto read = [](const std::string& tools) {
    RowMapping mapping;
    mapping.messages = "messages";
    mapping.tools = "tools";
    const auto row = map_row(
        {.value = ordered_json::parse(
             R"({"messages": [{"role": "assistant", "content": "b"}], "tools": )" + tools + "}"),
         .where = "t:1"},
        mapping);
    return row.ok() ? row->tools.dump() : row.status().message();
  };
  EXPECT_EQ(read(R"([{"name": "f"}])"), R"([{"name":"f"}])");
  EXPECT_EQ(read(R"("[{\"name\": \"f\"}]")"), R"([{"name":"f"}])");
  EXPECT_EQ(read(R"(["{\"name\": \"f\"}"])"), R"([{"name":"f"}])");
  for (const char* none : {"null", "\"\"", "\" \"", "\"null\"", "{}", "\"{}\""})
    EXPECT_EQ(read(none), "null") << none;
  for (const char* other : {R"("You have f.")", R"({"name": "f"})", R"(["{\"name\": \"f\""])",
                            R"("{\"name\": \"f\"}")", R"("[\"f\"]")", "5"})
    EXPECT_TRUE(read(other).starts_with("t:1: 'tools' must be a list of objects")) << read(other);
}

TEST(RowMapping, ColumnsThatNoPromptGetsAreKnown) {
  EXPECT_EQ(mapped(R"({"prompt": "b", "tools": [{"name": "f"}], "system": "S"})").unread,
            "'tools', 'system'");
  EXPECT_EQ(mapped(R"({"prompt": "b", "tools": [], "system": null})").unread, "");
  RowMapping mapping;
  mapping.prompt_template = "{system} {q}";
  const auto row = map_row(
      {.value = ordered_json::parse(R"({"q": "b", "system": "S"})"), .where = "t:1"}, mapping);
  EXPECT_EQ(row->prompt, "S b");
  EXPECT_EQ(row->unread, "");
}

TEST(RowMapping, AnswersThatAreNoTextsAreKnown) {
  for (const char* text : {R"("[5]")", "5", R"("true")"})
    EXPECT_FALSE(mapped((R"({"prompt": "b", "answer": )" + std::string(text) + "}").c_str())
                     .ground_truth_is_json)
        << text;
  for (const char* value : {R"(["5"])", "true", R"({"target":["5"]})"}) {
    const DataRow row =
        mapped((R"({"prompt": "b", "answer": )" + std::string(value) + "}").c_str());
    EXPECT_TRUE(row.ground_truth_is_json) << value;
    EXPECT_EQ(row.ground_truth, value);
  }
  RowMapping mapping;
  mapping.answer_after = "####";
  EXPECT_EQ(map_row({.value = ordered_json::parse(R"({"prompt": "b", "answer": ["#### 5"]})"),
                     .where = "t:1"},
                    mapping)
                .status()
                .message(),
            "t:1: the answer must be a text (data.answer_after), it is [\"#### 5\"]");
}

}  // namespace
}  // namespace rl
