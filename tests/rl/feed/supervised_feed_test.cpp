#include "rl/feed/supervised_feed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "rl/config/stage_keys.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class SupervisedFeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("starling-supervised-" + std::to_string(::getpid()));
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 1, .hidden_size = 32, .intermediate_size = 32}).ok());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& text) const {
    const fs::path file = folder_ / "rows.jsonl";
    std::ofstream(file) << text;
    return file.string();
  }

  // Of a file with these rows; or what is wrong with it.
  runtime::Result<std::unique_ptr<SupervisedFeed>> feed(const std::string& text,
                                                        std::vector<std::string> overrides = {},
                                                        EncodedRowsOptions options = {}) const {
    overrides.push_back("data.train_files=" + write(text));
    const auto config = Config::load({.file = {}, .overrides = overrides, .keys = &sft_keys()});
    if (!config.ok()) return config.status();
    const auto dataset = supervised_dataset(*config, Split::kTrain);
    if (!dataset.ok()) return dataset.status();
    options.model = folder_;
    options.shuffle = false;
    return SupervisedFeed::create(*config, **dataset, options);
  }

  std::string told(const std::string& text, std::vector<std::string> overrides = {}) const {
    const auto made = feed(text, std::move(overrides));
    return made.ok() ? "nothing" : made.status().message();
  }

  fs::path folder_;
};

constexpr const char* kTwoTurns =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"}, {"role": "user", "content": "d"}, {"role": "assistant", "content": "e"}]})"
    "\n";

TEST_F(SupervisedFeedTest, ConversationsAndDemonstrationsMayStandInOneFile) {
  const auto made = feed(std::string(kTwoTurns) + R"({"prompt": "ab", "response": "c"})"
                                                  "\n",
                         {}, {.batch_rows = 2});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto step = (*made)->next();
  ASSERT_TRUE(step.ok()) << step.status().to_string();
  ASSERT_EQ(step->batches.size(), 1u);
  EXPECT_EQ(step->batches[0].rows(), 2);
  EXPECT_EQ(step->learned_tokens, (3 + 2) + 2);  // with an end each
  EXPECT_EQ(step->tokens, (3 + 1 + 3 + 3 + 1 + 2) + 4);
}

TEST_F(SupervisedFeedTest, VerlsOlderKeysFindPromptAndResponse) {
  const std::string row = R"({"extra_info": {"question": "ab", "answer": "ba"}})"
                          "\n";
  const auto made =
      feed(row, {"data.prompt_key=extra_info", "data.response_key=extra_info",
                 "data.prompt_dict_keys=[question]", "data.response_dict_keys=[answer]"});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ((*made)->next()->learned_tokens, 3);
  EXPECT_NE(told(row, {"data.prompt_key=extra_info", "data.prompt_dict_keys=[problem]"})
                .find("rows.jsonl:1: 'extra_info' has no 'problem'; it has"),
            std::string::npos)
      << told(row, {"data.prompt_key=extra_info", "data.prompt_dict_keys=[problem]"});
}

TEST_F(SupervisedFeedTest, WrongRowsAreNamedWithFileRowAndColumn) {
  EXPECT_NE(told(std::string(kTwoTurns) + R"({"messages": [{"role": "user", "content": "a"}]})"
                                          "\n")
                .find("rows.jsonl:2: 'messages' (data.messages_key) has no message of the "
                      "assistant to learn from"),
            std::string::npos);
  EXPECT_NE(told(R"({"messages": "a"})"
                 "\n")
                .find("rows.jsonl:1: 'messages' (data.messages_key) must be a list of messages"),
            std::string::npos);
  EXPECT_NE(told(R"({"messages": [{"content": "a"}]})"
                 "\n")
                .find("rows.jsonl:1: 'messages' (data.messages_key): message 1 has no 'role'"),
            std::string::npos);
  EXPECT_NE(told(R"({"prompt": "a", "response": 3})"
                 "\n")
                .find("rows.jsonl:1: 'response' must be a text"),
            std::string::npos);
  EXPECT_NE(told(R"({"prompt": "a"})"
                 "\n")
                .find("rows.jsonl:1: nothing to learn"),
            std::string::npos);
  EXPECT_NE(told(R"({"text": "a"})"
                 "\n")
                .find("rows.jsonl:1: no key 'prompt' (data.prompt_key), and no conversation "
                      "'messages' (data.messages_key)"),
            std::string::npos)
      << told(R"({"text": "a"})"
              "\n");
  EXPECT_NE(told(R"({"prompt": "a", "response": "b"})"
                 "\n",
                 {"data.multiturn.enable=true"})
                .find("'messages'"),
            std::string::npos);
  EXPECT_NE(told("").find("rows.jsonl"), std::string::npos) << told("");
  EXPECT_NE(told(kTwoTurns, {"data.max_length=5"})
                .find("rows.jsonl:1: the sequence has 13 tokens, data.max_length is 5"),
            std::string::npos)
      << told(kTwoTurns, {"data.max_length=5"});
}

TEST_F(SupervisedFeedTest, AStepThatHasNothingLeftToLearnIsAnError) {
  const auto made = feed(kTwoTurns, {"data.max_length=4", "data.truncation=right"});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto step = (*made)->next();
  ASSERT_FALSE(step.ok());
  EXPECT_NE(step.status().message().find("raise data.max_length"), std::string::npos);
}

TEST_F(SupervisedFeedTest, ContinuesWhereItsPositionWasSaved) {
  std::string rows;
  for (const char* letter : {"a", "b", "c", "d", "e"})
    rows += std::string(R"({"prompt": "x", "response": ")") + letter + "\"}\n";
  auto first = feed(rows, {}, {.batch_rows = 2});
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  ASSERT_TRUE((*first)->next().ok());
  const nlohmann::json position = (*first)->rows().position();
  auto second = feed(rows, {}, {.batch_rows = 2});
  ASSERT_TRUE((*second)->rows().resume(position).ok());
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ((*first)->next()->batches, (*second)->next()->batches);
    EXPECT_EQ((*first)->rows().epoch(), (*second)->rows().epoch());
  }
  EXPECT_EQ((*first)->rows().epoch(), 1);
}

TEST_F(SupervisedFeedTest, TheLengthsOfRowsAreKnown) {
  const auto made = feed(std::string(kTwoTurns) + R"({"prompt": "ab", "response": "c"})"
                                                  "\n",
                         {}, {.batch_rows = 2});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const RowLengths lengths = (*made)->row_lengths();
  EXPECT_EQ(lengths.longest, 3 + 1 + 3 + 3 + 1 + 2);
  EXPECT_EQ(lengths.items, (std::vector<std::int64_t>{13, 4}));
  EXPECT_EQ(lengths.of_longest(2), 17);
  EXPECT_TRUE(lengths.all_seen());
}

TEST_F(SupervisedFeedTest, SaysWhatTheTemplateLeavesOutOnceAField) {
  const std::string row =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "tools": [{"type": "function", "function": {"name": "f"}}]})"
      "\n";
  const auto made = feed(kTwoTurns + row + row);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const std::vector<std::string> unwritten = (*made)->unwritten_fields();
  ASSERT_EQ(unwritten.size(), 1u);
  EXPECT_NE(unwritten[0].find("rows.jsonl:2: it has tools, which the chat template"),
            std::string::npos)
      << unwritten[0];
}

}  // namespace
}  // namespace rl
