// `starling eval`, as a user runs it, with a toy model.
#include "rl/app/eval.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "rl/checkpoint/checkpoint.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

struct EvalOutcome {
  int exit = 0;
  std::string out;
  std::string errors;
};

class EvalCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_toy_model(folder_.file("model"), {}).ok());
    std::ofstream(folder_.file("rows.jsonl"))
        << R"({"prompt":[{"role":"user","content":"sort dcba"}],"answer":"abcd","data_source":"toy"})"
        << "\n"
        << R"({"prompt":[{"role":"user","content":"sort hgfe"}],"answer":"efgh","data_source":"other"})"
        << "\n";
  }

  std::string file(const std::string& name) const { return folder_.file(name); }

  EvalOutcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "eval");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    std::ostringstream out;
    std::streambuf* const old = std::cout.rdbuf(out.rdbuf());
    ::testing::internal::CaptureStderr();
    EvalOutcome outcome;
    outcome.exit = eval_command(static_cast<int>(argv.size()), argv.data());
    outcome.errors = ::testing::internal::GetCapturedStderr();
    std::cout.rdbuf(old);
    outcome.out = out.str();
    return outcome;
  }

  // With --json; the results by data source.
  std::map<std::string, nlohmann::json> results(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const EvalOutcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.exit, 0) << outcome.errors;
    std::map<std::string, nlohmann::json> by_source;
    const nlohmann::json all = nlohmann::json::parse(outcome.out, nullptr, false);
    if (all.is_discarded()) return by_source;
    for (const nlohmann::json& one : all["results"]) by_source[one["data_source"]] = one;
    return by_source;
  }

  support::TemporaryFolder folder_;
};

TEST_F(EvalCommand, ScoresEachDataSourceWithIntervals) {
  const auto found = results({"--model", file("model"), "--data", file("rows.jsonl"), "--reward",
                              "rule=format", "--n", "4", "--max-tokens", "6"});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found.at("toy")["answers"], 4);
  EXPECT_EQ(found.at("all")["prompts"], 2);
  EXPECT_EQ(found.at("all")["accuracy"]["value"], 0.0);
  EXPECT_GT(found.at("all")["accuracy"]["high"].get<double>(), 0.3);
  EXPECT_TRUE(found.at("all").contains("pass@4"));
  EXPECT_TRUE(found.at("all").contains("maj@4"));
}

TEST_F(EvalCommand, CountsWhatReachesTheThreshold) {
  // Every answer matches an empty pattern, so that all are right; with a threshold above, none.
  const std::vector<std::string> common = {"--model",      file("model"),
                                           "--data",       file("rows.jsonl"),
                                           "--reward",     "rule=regex",
                                           "--reward",     "rule_kwargs.pattern='^'",
                                           "--max-tokens", "4"};
  EXPECT_EQ(results(common).at("all")["accuracy"]["value"], 1.0);
  auto above = common;
  above.insert(above.end(), {"--right-from", "1.5"});
  EXPECT_EQ(results(above).at("all")["accuracy"]["value"], 0.0);
  EXPECT_EQ(results(above).at("all")["score"], 1.0);
}

TEST_F(EvalCommand, KeysBehindARewardAreKeys) {
  std::ofstream(file("plain.jsonl")) << R"({"question":"sort dcba","answer":"abcd"})"
                                     << "\n";
  const auto found =
      results({"--model", file("model"), "--data", file("plain.jsonl"), "--max-tokens", "4",
               "--reward", "rule=exact", "data.prompt_template='{question}'"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.begin()->second["prompts"], 1);
}

TEST_F(EvalCommand, GivesTheSameFiguresForTheSameSeed) {
  const std::vector<std::string> common = {"--model", file("model"),  "--data", "toy",     "--n",
                                           "2",       "--max-tokens", "8",      "--limit", "5"};
  const auto first = results(common), again = results(common);
  EXPECT_EQ(first.at("toy"), again.at("toy"));
  EXPECT_EQ(first.at("toy")["prompts"], 5);
  auto other = common;
  other.insert(other.end(), {"--seed", "2"});
  EXPECT_NE(results(other).at("toy"), first.at("toy"));
}

TEST_F(EvalCommand, WritesAPageWithEveryAnswer) {
  const EvalOutcome outcome =
      run({"--model", file("model"), "--data", file("rows.jsonl"), "--reward", "rule=exact",
           "--max-tokens", "4", "--out", file("page.html")});
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  EXPECT_NE(outcome.out.find("all: 2 prompts, 2 answers, 0 errors"), std::string::npos)
      << outcome.out;
  std::ifstream in(folder_.file("page.html"));
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(page.find("sort dcba"), std::string::npos);
  EXPECT_NE(page.find("efgh"), std::string::npos);
}

TEST_F(EvalCommand, FindsTheModelInACheckpoint) {
  auto checkpoint = CheckpointWriter::begin(file("run"), 5);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().to_string();
  std::filesystem::create_directories(checkpoint->folder() / "actor");
  std::filesystem::rename(folder_.file("model"), checkpoint->folder() / "actor" / "huggingface");
  ASSERT_TRUE(checkpoint->commit({"actor/huggingface/config.json"}).ok());
  const std::vector<std::string> rest = {"--data", "toy", "--limit", "2", "--max-tokens", "4"};
  for (const std::string& model :
       {file("run"), file("run/global_step_5"), file("run/global_step_5/actor/huggingface")}) {
    std::vector<std::string> arguments = {"--model", model};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    EXPECT_EQ(results(arguments).at("toy")["prompts"], 2) << model;
  }
}

TEST_F(EvalCommand, UsesTheAdapterOfACheckpointOnTheModelThatItIsFor) {
  const auto model = ModelConfig::load(folder_.file("model"));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  LoraConfig config;
  config.rank = 2;
  config.base_model = file("model");
  const auto adapter = LoraAdapter::create(*model, config, 1);
  ASSERT_TRUE(adapter.ok()) << adapter.status().to_string();
  std::filesystem::create_directories(file("step/actor/lora_adapter"));
  ASSERT_TRUE(adapter->save(file("step/actor/lora_adapter")).ok());
  const std::vector<std::string> rest = {"--data", "toy", "--limit", "2", "--max-tokens", "4"};
  std::vector<std::string> arguments = {"--model", file("step")};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  EXPECT_EQ(results(arguments).at("toy")["prompts"], 2);
  std::filesystem::remove_all(file("model"));
  const EvalOutcome gone = run(arguments);
  EXPECT_EQ(gone.exit, 1);
  EXPECT_NE(gone.errors.find("the model that " + file("step/actor/lora_adapter") + " is for"),
            std::string::npos)
      << gone.errors;
}

TEST_F(EvalCommand, CountsAnswersThatFailAndSaysSo) {
  const EvalOutcome outcome =
      run({"--model", file("model"), "--data", file("rows.jsonl"), "--reward", "rule=exact",
           "--max-tokens", "4", "data.max_prompt_length=2", "data.truncation=error"});
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_NE(outcome.errors.find("rows.jsonl:1"), std::string::npos) << outcome.errors;
  std::string long_prompt;
  for (int i = 0; i < 40; ++i) long_prompt += "abcdef";
  std::ofstream(folder_.file("long.jsonl"))
      << R"({"prompt":"sort dcba","answer":"abcd"})"
      << "\n"
      << nlohmann::json{{"prompt", long_prompt}, {"answer", "a"}}.dump() << "\n";
  const EvalOutcome beyond = run({"--model", file("model"), "--data", file("long.jsonl"),
                                  "--reward", "rule=exact", "--max-tokens", "4"});
  EXPECT_EQ(beyond.exit, 1);
  EXPECT_NE(beyond.errors.find("long.jsonl:2"), std::string::npos) << beyond.errors;
  EXPECT_NE(beyond.errors.find("1 answers have no score"), std::string::npos) << beyond.errors;
  EXPECT_NE(beyond.out.find("2 prompts, 2 answers, 1 errors"), std::string::npos) << beyond.out;
}

TEST_F(EvalCommand, WarnsOfDataThatAreNotWhatTheySeem) {
  std::ofstream(file("model/chat_template.jinja"))
      << "{% for m in messages %}{{ m.content }}{% endfor %}";
  std::ofstream(file("reward.py"))
      << "def compute_score(**kwargs):\n  print('dbg')\n  return 1.0\n";
  std::ofstream(file("plain.jsonl")) << R"({"prompt": "sort ba", "answer": null, "reply": "ab"})"
                                     << "\n"
                                     << R"({"prompt": "sort dc", "reply": "cd"})"
                                     << "\n";
  ::testing::internal::CaptureStdout();
  const EvalOutcome outcome =
      run({"--model", file("model"), "--data", file("plain.jsonl"), "--json", "--reward",
           "+custom_reward_function.path=" + file("reward.py"), "--max-tokens", "4"});
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(outcome.exit, 0) << outcome.errors;
  EXPECT_FALSE(nlohmann::json::parse(outcome.out, nullptr, false).is_discarded()) << outcome.out;
  for (const char* part :
       {"plain.jsonl:1: no answer: it has 'prompt', 'reply' (and null in 'answer'), and no value "
        "in "
        "any of",
        "plain.jsonl:1: the prompt is plain text", "data.prompt_form=chat", ": dbg"})
    EXPECT_NE(outcome.errors.find(part), std::string::npos) << part << " in: " << outcome.errors;
  EXPECT_EQ(outcome.errors.find("plain.jsonl:2"), std::string::npos) << outcome.errors;
}

TEST_F(EvalCommand, NamesWhatIsWrong) {
  const auto expect = [&](std::vector<std::string> arguments, int exit, const std::string& words) {
    const EvalOutcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.exit, exit);
    EXPECT_NE(outcome.errors.find(words), std::string::npos) << outcome.errors;
  };
  expect({}, 2, "--model");
  expect({"--model", file("model")}, 1, "give --data FILE");
  expect({"--model", file("model"), "--data", file("none.jsonl")}, 1, "none.jsonl");
  expect({"--model", file("none"), "--data", "toy"}, 1, "none");
  expect({"--model", file("model"), "--data", "toy", "--reward", "rule=gsm"}, 1,
         "there is no rule 'gsm'");
  expect({"--model", file("model"), "--data", file("rows.jsonl")}, 1,
         "rows.jsonl:2");  // no rule scores 'other'
  std::filesystem::create_directories(file("empty"));
  expect({"--model", file("empty"), "--data", "toy"}, 1, "no model there");
}

}  // namespace
}  // namespace rl
