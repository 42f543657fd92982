#include "rl/app/data.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/temporary_folder.h"

namespace {

using nlohmann::ordered_json;

const std::string kFiles = STARLING_SOURCE_DIR "/tests/rl/data/files/";

struct DataOutcome {
  int code;
  std::string out;
  std::string error;
};

DataOutcome data(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "data");
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  std::ostringstream out, error;
  auto* old_out = std::cout.rdbuf(out.rdbuf());
  auto* old_error = std::cerr.rdbuf(error.rdbuf());
  const int code = rl::data_command(static_cast<int>(argv.size()), argv.data());
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_error);
  return {code, out.str(), error.str()};
}

std::vector<ordered_json> rows_of(const std::string& file) {
  std::vector<ordered_json> rows;
  std::istringstream lines(data({"head", file, "-n", "1000", "--json"}).out);
  for (std::string line; std::getline(lines, line);) rows.push_back(ordered_json::parse(line));
  return rows;
}

class DataCommand : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const auto path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::string out(const std::string& name) const { return (folder_.path() / name).string(); }

  const support::TemporaryFolder folder_;
};

TEST_F(DataCommand, HeadShowsRowsForPeopleAndForPrograms) {
  const DataOutcome people = data({"head", kFiles + "verl_snappy.parquet", "-n", "1"});
  EXPECT_EQ(people.code, 0) << people.error;
  EXPECT_NE(
      people.out.find(
          "verl_snappy.parquet: row 1\n  data_source: \"openai/gsm8k\"\n  prompt:\n    user: \""),
      std::string::npos)
      << people.out;
  EXPECT_EQ(rows_of(kFiles + "verl_snappy.parquet").size(), 10u);
  EXPECT_EQ(rows_of(kFiles + "verl_snappy.parquet")[3]["reward_model"]["ground_truth"], "6");
  const std::string longest = file("long.jsonl", R"({"a": ")" + std::string(1000, 'x') + "\"}\n");
  EXPECT_LT(data({"head", longest}).out.size(), 700u);
  for (const char* wrong : {"0", "-3", "two", "1.5", "99999999999999999999"}) {
    const DataOutcome told = data({"head", longest, "-n", wrong});
    EXPECT_EQ(told.code, 2) << wrong;
    EXPECT_NE(told.error.find("is not a whole number from 1"), std::string::npos) << told.error;
  }
}

TEST_F(DataCommand, ShowsPreferencesSoThatTheyCanBeCompared) {
  const std::string path = file(
      "pairs.jsonl",
      R"({"prompt": "q", "chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a\nb"}], "rejected": [{"from": "gpt", "value": "c"}]}
{"prompt": "q", "chosen": "same", "rejected": "same"}
)");
  EXPECT_NE(data({"head", path})
                .out.find(":1\n  prompt: \"q\"\n  chosen:\n    user: \"q\"\n    assistant: "
                          "\"a\\nb\"\n  rejected:\n    gpt: \"c\"\n"),
            std::string::npos)
      << data({"head", path}).out;
  EXPECT_NE(data({"stats", path}).out.find("2 pairs of chosen and rejected, 1 of them equal"),
            std::string::npos)
      << data({"stats", path}).out;
}

TEST_F(DataCommand, StatsDescribeColumns) {
  const std::string path = file("a.jsonl", R"({"kind": "x", "text": "n\u00e4he", "list": [1, 2]}
{"kind": "y", "text": null, "list": []}
{"kind": "x", "text": "abcdefgh", "list": ["a"]}
)");
  const DataOutcome json = data({"stats", path, "--json"});
  ASSERT_EQ(json.code, 0) << json.error;
  const ordered_json stats = ordered_json::parse(json.out);
  EXPECT_EQ(stats["rows"], 3);
  EXPECT_EQ(stats["columns"][0]["values"], (ordered_json{{"x", 2}, {"y", 1}}));
  EXPECT_EQ(stats["columns"][1]["missing"], 1);
  EXPECT_EQ(stats["columns"][1]["characters"]["min"], 4) << "characters, not bytes";
  EXPECT_EQ(stats["columns"][1]["characters"]["max"], 8);
  EXPECT_EQ(stats["columns"][2]["type"], "mixed");
  EXPECT_EQ(stats["columns"][2]["elements"]["max"], 2);
  const DataOutcome people =
      data({"stats", path, "--tokenizer",
            STARLING_SOURCE_DIR "/tests/fixtures/tokenizers/llama2_bytefallback"});
  EXPECT_NE(people.out.find("text: text, missing in 1\n  characters: 4 to 8"), std::string::npos)
      << people.out;
  EXPECT_NE(people.out.find("  tokens: "), std::string::npos) << people.out;
}

TEST_F(DataCommand, ConvertGoesFromAnyFormIntoAnyOther) {
  const std::vector<ordered_json> rows = rows_of(kFiles + "verl_snappy.parquet");
  std::string from = kFiles + "verl_snappy.parquet";
  for (const char* name : {"a.jsonl", "b.parquet", "c.arrow", "d.json", "folder", "e.jsonl"}) {
    const DataOutcome done = data({"convert", from, out(name)});
    ASSERT_EQ(done.code, 0) << name << ": " << done.error;
    EXPECT_NE(done.out.find(": 10 rows"), std::string::npos);
    from = out(name);
    EXPECT_EQ(rows_of(from), rows) << name;
  }
  EXPECT_EQ(data({"convert", from, out("few.parquet"), "-n", "4"}).code, 0);
  EXPECT_EQ(rows_of(out("few.parquet")).size(), 4u);
}

TEST_F(DataCommand, ConvertMapsColumnsIntoVerlsForm) {
  const std::string gsm8k =
      file("gsm8k.jsonl", R"({"question": "2+3?", "answer": "2 and 3 are 5\n#### 5"})"
                          "\n");
  const DataOutcome done =
      data({"convert", gsm8k, out("gsm8k.parquet"), "data.prompt_template='Q: {question}'",
            "data.answer_after='####'", "data.prompt_form=chat"});
  ASSERT_EQ(done.code, 0) << done.error;
  const ordered_json row = rows_of(out("gsm8k.parquet")).at(0);
  EXPECT_EQ(row["prompt"], ordered_json::parse(R"([{"role": "user", "content": "Q: 2+3?"}])"));
  EXPECT_EQ(row["reward_model"]["ground_truth"], "5");
}

TEST_F(DataCommand, ErrorsNameWhatIsWrongAndLeaveNothingBehind) {
  EXPECT_EQ(data({}).code, 2);
  EXPECT_NE(data({"hed", "x"}).error.find("no command 'data hed'"), std::string::npos);
  EXPECT_NE(data({"head", "/no/such.parquet"}).error.find("/no/such.parquet"), std::string::npos);
  EXPECT_NE(data({"head", kFiles + "../make_files.py"}).error.find("make_files.py"),
            std::string::npos);
  const std::string mixed = file("mixed.jsonl", "{\"a\": 1}\n{\"a\": \"x\"}\n");
  const DataOutcome refused = data({"convert", mixed, out("mixed.parquet")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.error.find("mixed.jsonl:2"), std::string::npos) << refused.error;
  EXPECT_FALSE(std::filesystem::exists(out("mixed.parquet")));
  EXPECT_NE(
      data({"convert", file("good.jsonl", "{\"a\": 1}\n"), out("x.xlsx")}).error.find("x.xlsx"),
      std::string::npos);
  EXPECT_NE(
      data({"convert", mixed, out("x.jsonl"), "trainer.nnodes=2"}).error.find("trainer.nnodes=2"),
      std::string::npos);
  EXPECT_NE(data({"convert", file("empty.jsonl", ""), out("x.jsonl")}).code, 0);
}

}  // namespace
