#include "rl/data/dataset.h"

#include <gtest/gtest.h>

#include "rl/data/jsonl.h"
#include "tests/rl/data/test_files.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using testing::TempFile;

runtime::Result<Dataset> load(std::vector<std::string> files) {
  DatasetOptions options;
  options.files = std::move(files);
  return Dataset::load(options);
}

std::string complaint(const std::string& line) {
  const auto row = parse_row(line, "prompt", "f.jsonl:7");
  return row.ok() ? "" : row.status().message();
}

TEST(Dataset, ReadsVerlsRows) {
  const auto row = parse_row(
      R"({"data_source":"openai/gsm8k","prompt":[{"role":"user","content":"1+1?"}],"ability":"math","reward_model":{"style":"rule","ground_truth":"2"},"extra_info":{"split":"train","index":3}})",
      "prompt", "f:1");
  ASSERT_TRUE(row.ok()) << row.status().to_string();
  EXPECT_TRUE(row->is_chat());
  EXPECT_EQ(row->prompt[0].at("content"), "1+1?");
  EXPECT_EQ(row->ground_truth, "2");
  EXPECT_EQ(row->data_source, "openai/gsm8k");
  EXPECT_EQ(row->extra.at("index"), 3);
  EXPECT_EQ(row->response, std::nullopt);
}

TEST(Dataset, ReadsSimpleRows) {
  const auto row = parse_row(R"({"prompt":"1+1=","answer":2,"response":"two"})", "prompt", "f:1");
  ASSERT_TRUE(row.ok()) << row.status().to_string();
  EXPECT_FALSE(row->is_chat());
  EXPECT_EQ(row->ground_truth, "2");
  EXPECT_EQ(row->response, "two");
  EXPECT_EQ(parse_row(R"({"q":"x"})", "q", "f:1")->prompt, "x");
}

TEST(Dataset, DamagedLinesNameFileAndLine) {
  EXPECT_EQ(complaint(R"({"question":"x","answer":"y"})"),
            "f.jsonl:7: no key 'prompt' (data.prompt_key); it has 'question', 'answer'");
  EXPECT_EQ(complaint(R"({"prompt":"x")").substr(0, 20), "f.jsonl:7: not JSON:");
  EXPECT_EQ(complaint("[1]"), "f.jsonl:7: a row must be an object, it is a list");
  EXPECT_EQ(complaint(R"({"prompt":5})"),
            "f.jsonl:7: 'prompt' must be a text or a list of messages, it is a number");
  EXPECT_EQ(complaint(R"({"prompt":[]})"), "f.jsonl:7: 'prompt' is an empty list of messages");
  EXPECT_EQ(
      complaint(R"({"prompt":["hi"]})"),
      "f.jsonl:7: 'prompt': message 1 must be an object with role and content, it is a string");
  EXPECT_EQ(complaint(R"({"prompt":[{"content":"hi"}]})"),
            "f.jsonl:7: 'prompt': message 1 has no 'role'");
  EXPECT_EQ(complaint(R"({"prompt":[{"role":"user"}]})"),
            "f.jsonl:7: 'prompt': message 1 has no 'content'");
  EXPECT_EQ(complaint(R"({"prompt":[{"role":7,"content":"a"}]})"),
            "f.jsonl:7: 'prompt': message 1: 'role' must be a text, it is a number");
  EXPECT_EQ(complaint(R"({"prompt":[{"role":"user","content":7}]})"),
            "f.jsonl:7: 'prompt': message 1: 'content' must be a text or a list of parts, it is a "
            "number");
  EXPECT_EQ(
      complaint(R"({"prompt":[{"role":"user","content":null}]})"),
      "f.jsonl:7: 'prompt': message 1: 'content' must be a text or a list of parts, it is null");
  EXPECT_EQ(
      complaint(
          R"({"prompt":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}}]}],"answer":"b"})"),
      "");
  EXPECT_EQ(complaint(R"({"prompt":"x","response":1})"),
            "f.jsonl:7: 'response' must be a text, it is a number");
  EXPECT_EQ(complaint(R"({"prompt":)" + std::string(100'000, '[')).substr(0, 10), "f.jsonl:7:");
  const TempFile file("{\"prompt\":\"a\"}\n\n{\"prompt\":\"b\"}\n{\"x\":1}\n");
  EXPECT_EQ(load({file.path()}).status().message(),
            file.path() + ":4: no key 'prompt' (data.prompt_key); it has 'x'");
}

TEST(Dataset, JoinsFilesInOrder) {
  const TempFile first("\xEF\xBB\xBF{\"prompt\":\"a\"}\r\n{\"prompt\":\"b\"}"),
      second("\n{\"prompt\":\"c\"}\n");
  const auto dataset = load({first.path(), second.path()});
  ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->row(2).prompt, "c");
  EXPECT_EQ(dataset->row(2).where, second.path() + ":2");
  DatasetOptions options;
  options.files = {first.path(), second.path()};
  options.rows_max = 2;
  EXPECT_EQ(Dataset::load(options)->size(), 2);
}

TEST(Dataset, MissingEmptyAndUnreadableFilesAreErrors) {
  EXPECT_EQ(load({"/nonexistent/a.jsonl"}).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(load({}).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(load({"/tmp"}).status().message(),
            "data file /tmp: is a folder, and not one of save_to_disk: it has neither state.json "
            "nor dataset_dict.json");
  EXPECT_EQ(load({"a.parquet"}).status().code(), ErrorCode::kNotFound);
  const TempFile empty("\n \n");
  EXPECT_EQ(load({empty.path()}).status().message(), "the data set is empty: " + empty.path());
  const TempFile long_line("{\"prompt\":\"" + std::string(5000, 'x') + "\"}\n");
  DatasetOptions options;
  options.files = {long_line.path()};
  options.row_bytes_max = 1000;
  EXPECT_EQ(Dataset::load(options).status().message(),
            long_line.path() + ":1: longer than 1000 bytes");
  options = {};
  options.name = "toys";
  EXPECT_EQ(Dataset::load(options).status().code(), ErrorCode::kInvalidArgument);
}

TEST(Dataset, OptionsComeFromTheConfiguration) {
  const auto none = Config::load({std::nullopt, {}});
  EXPECT_EQ(dataset_options(*none, Split::kTrain).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(*dataset_options(*none, Split::kValidation), std::nullopt);
  const auto files = Config::load(
      {std::nullopt, {"data.train_files=[a,b]", "data.prompt_key=q", "data.train_max_samples=5"}});
  const auto options = *dataset_options(*files, Split::kTrain);
  EXPECT_EQ(options->files, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options->mapping.prompt, "q");
  EXPECT_EQ(options->rows_max, 5);
  EXPECT_EQ(*dataset_options(*files, Split::kValidation), std::nullopt);
  EXPECT_EQ((*dataset_options(*files, Split::kDemonstrations))->files, options->files);
  const auto demonstrations =
      Config::load({std::nullopt, {"data.dataset_name=toy", "data.sft_files=c"}});
  EXPECT_EQ((*dataset_options(*demonstrations, Split::kDemonstrations))->files,
            (std::vector<std::string>{"c"}));
  EXPECT_EQ((*dataset_options(*demonstrations, Split::kTrain))->name, "toy");
  const auto toy = Config::load(
      {std::nullopt, {"data.dataset_name=toy", "data.toy.rows=10", "data.toy.task=copy"}});
  const auto train = Dataset::load(**dataset_options(*toy, Split::kTrain));
  const auto held_out = Dataset::load(**dataset_options(*toy, Split::kValidation));
  ASSERT_TRUE(train.ok() && held_out.ok());
  EXPECT_EQ(train->size(), 10);
  EXPECT_NE(train->row(0).prompt, held_out->row(0).prompt);
}

}  // namespace
}  // namespace rl
