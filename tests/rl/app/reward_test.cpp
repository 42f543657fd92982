// `starling reward score`, as a user runs it: a file of rows in, lines out.
#include "rl/app/reward.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::json;

struct RewardOutcome {
  int code = 0;
  std::vector<std::string> lines;
  std::string errors;

  json object(std::size_t line) const { return json::parse(lines.at(line)); }
};

class RewardScoreCommand : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const auto path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  static RewardOutcome reward(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "reward");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    std::ostringstream out, errors;
    std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
    std::streambuf* const old_errors = std::cerr.rdbuf(errors.rdbuf());
    RewardOutcome told;
    told.code = reward_command(static_cast<int>(argv.size()), argv.data());
    std::cout.rdbuf(old_out);
    std::cerr.rdbuf(old_errors);
    told.errors = errors.str();
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) told.lines.push_back(line);
    return told;
  }

  support::TemporaryFolder folder_;
};

TEST_F(RewardScoreCommand, SaysScoreRuleAndWhatWasCompared) {
  const std::string rows =
      file("rows.jsonl",
           "{\"response\": \"\\\\boxed{10\\\\text{ cm}^2}\", \"ground_truth\": \"10\"}\n"
           "{\"response\": \"ten\", \"ground_truth\": 10}\n");
  const RewardOutcome people = reward({"score", rows, "--reward", "rule=math"});
  EXPECT_EQ(people.code, 0) << people.errors;
  EXPECT_EQ(people.lines, (std::vector<std::string>{rows + ":1: 1 by math: '10' for '10'",
                                                    rows + ":2: 0 by math: no answer for '10'",
                                                    "2 scores, mean 0.5"}));
  const RewardOutcome programs = reward({"score", rows, "--reward", "rule=math", "--json"});
  EXPECT_EQ(programs.code, 0) << programs.errors;
  ASSERT_EQ(programs.lines.size(), 2u);
  EXPECT_EQ(programs.object(0), json::parse(R"({"score": 1.0, "rule": "math",
      "compared": {"answer": "10", "ground_truth": "10"}})"));
  EXPECT_EQ(programs.object(1)["compared"]["answer"], nullptr);
}

TEST_F(RewardScoreCommand, RulesGoByDataSourceAndColumnsByKeys) {
  const std::string rows =
      file("dump.jsonl", R"({"output": "#### 4", "gts": "4", "data_source": "openai/gsm8k"})"
                         "\n"
                         R"({"output": "Answer: 5", "gts": "5", "data_source": "aime24"})"
                         "\n");
  const RewardOutcome told =
      reward({"score", rows, "--json", "data.columns.response=output", "data.columns.answer=gts"});
  EXPECT_EQ(told.code, 0) << told.errors;
  ASSERT_EQ(told.lines.size(), 2u);
  EXPECT_EQ(told.object(0)["rule"], "gsm8k");
  EXPECT_EQ(told.object(1)["rule"], "math_dapo");
  EXPECT_EQ(told.object(1)["score"], 1.0);
}

TEST_F(RewardScoreCommand, ARowThatFailsIsOneAmongTheOthers) {
  const std::string rows = file("rows.jsonl", R"({"response": "3", "ground_truth": "3"}
{"response": 5, "ground_truth": "5"}
{"ground_truth": "5"}
{"response": "4", "ground_truth": "four"}
{"response": "4"}
{"response": "4", "ground_truth": "5"}
)");
  const RewardOutcome told = reward({"score", rows, "--reward", "rule=number", "--json"});
  EXPECT_EQ(told.code, 1);
  EXPECT_EQ(told.errors, "error: 4 of 6 rows have no score\n");
  ASSERT_EQ(told.lines.size(), 6u);
  EXPECT_EQ(told.object(0)["score"], 1.0);
  EXPECT_EQ(told.object(5)["score"], 0.0);
  const std::pair<std::size_t, std::string> reasons[] = {
      {1, rows + ":2: 'response' must be a text, it is a number"},
      {2, rows + ":3: no key 'response' (data.columns.response); it has 'ground_truth'"},
      {3, rows + ":4: reward rule 'number': the ground truth 'four' is not a number"},
      {4, rows + ":5: reward rule 'number': the row has no ground truth (key "
                 "reward_model.ground_truth, or answer)"}};
  for (const auto& [line, why] : reasons) {
    EXPECT_EQ(told.object(line)["error"], why);
    EXPECT_EQ(told.object(line)["score"], nullptr);
  }
}

TEST_F(RewardScoreCommand, APythonFunctionGetsNoneForNoAnswer) {
  const std::string function = file("reward.py", R"(
def compute_score(data_source, solution_str, ground_truth, extra_info, a, b=5):
    if solution_str == "fail": raise ValueError("told to")
    return {"score": 1.0 if ground_truth is None and a is None and b == 3 else 0.5, "acc": 2}
)");
  const std::string config = file("c.yaml", "custom_reward_function: {path: " + function +
                                                ", reward_kwargs: {a: null, b: 3}}\n");
  const std::string rows = file("rows.jsonl", R"({"response": "x", "question": "q"}
{"response": "x", "ground_truth": ""}
{"response": "fail"}
)");
  const RewardOutcome told = reward({"score", rows, "--config", config, "--json"});
  EXPECT_EQ(told.code, 1);
  ASSERT_EQ(told.lines.size(), 3u) << told.errors;
  EXPECT_EQ(told.object(0)["score"], 1.0) << told.lines[0];
  EXPECT_EQ(told.object(0)["rule"], "function");
  EXPECT_EQ(told.object(0)["extra"], json::parse(R"({"acc": 2.0})"));
  EXPECT_EQ(told.object(1)["score"], 0.5) << told.lines[1];
  EXPECT_NE(told.object(2)["error"].get<std::string>().find("ValueError: told to"),
            std::string::npos)
      << told.lines[2];
  const RewardOutcome overridden =
      reward({"score", rows, "--json", "--reward", "custom_reward_function.path=" + function,
              "+custom_reward_function.reward_kwargs.a=null",
              "+custom_reward_function.reward_kwargs.b=3"});
  ASSERT_EQ(overridden.lines.size(), 3u) << overridden.errors;
  EXPECT_EQ(overridden.object(0)["score"], 1.0) << overridden.lines[0];
}

// Standard output is for programs: what a function prints and raises is on stderr.
TEST_F(RewardScoreCommand, WhatAFunctionPrintsIsNotAmongTheScores) {
  const std::string function = file("reward.py", R"(
def compute_score(data_source, solution_str, ground_truth, extra_info):
    print("dbg")
    if solution_str == "fail": raise ValueError("told to")
    return 1.0
)");
  const std::string rows = file("rows.jsonl", R"({"response": "x", "ground_truth": null}
{"response": "fail", "ground_truth": "a"}
)");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const RewardOutcome told =
      reward({"score", rows, "--json", "--reward", "+custom_reward_function.path=" + function});
  const std::string errors = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(errors.find(": dbg"), std::string::npos) << errors;
  EXPECT_NE(errors.find("told to"), std::string::npos) << errors;
  ASSERT_EQ(told.lines.size(), 2u) << told.errors;
  EXPECT_EQ(told.object(0)["compared"], json::parse(R"({"answer": "x", "ground_truth": null})"));
  EXPECT_EQ(told.object(1)["score"], nullptr);
  const RewardOutcome people =
      reward({"score", rows, "--reward", "custom_reward_function.path=" + function});
  EXPECT_EQ(people.lines.at(0), rows + ":1: 1 by function: 'x' for no ground truth");
}

TEST_F(RewardScoreCommand, ARewardMayBeAddedAsHydraAdds) {
  const std::string rows = file("rows.jsonl", R"({"response": "3", "ground_truth": "3"})");
  for (const char* sign : {"", "+", "++"}) {
    const RewardOutcome told =
        reward({"score", rows, "--json", "--reward", sign + std::string("rule=exact")});
    EXPECT_EQ(told.code, 0) << told.errors;
    EXPECT_EQ(told.object(0)["rule"], "exact") << sign;
  }
}

TEST_F(RewardScoreCommand, AMixtureHasItsParts) {
  const std::string rows = file("rows.jsonl", R"({"response": "so 3", "ground_truth": "3"})");
  const RewardOutcome told =
      reward({"score", rows, "--json", "--reward",
              "mixture=[{rule: exact, weight: 0.25}, {rule: number, weight: 0.75}]"});
  EXPECT_EQ(told.code, 0) << told.errors;
  const json row = told.object(0);
  EXPECT_EQ(row["score"], 0.75);
  EXPECT_EQ(row["rule"], "mixture");
  EXPECT_EQ(row["parts"][0]["score"], 0.0);
  EXPECT_EQ(row["parts"][1]["compared"]["answer"], "3");
}

TEST_F(RewardScoreCommand, MistakesAreNamed) {
  const std::string rows = file("rows.jsonl", R"({"response": "3", "ground_truth": "3"})");
  const auto fails = [](const std::vector<std::string>& arguments, int code,
                        const std::string& part) {
    const RewardOutcome told = reward(arguments);
    EXPECT_EQ(told.code, code) << told.errors;
    EXPECT_NE(told.errors.find(part), std::string::npos) << told.errors;
  };
  fails({"score", rows, "--reward", "rule=nope"}, 1, "there is no rule 'nope'; there is exact,");
  fails({"score", rows + ".not"}, 1, "No such file");
  fails({"score", file("bad.jsonl", "{\"response\": \"\xff\"}\n"), "--reward", "rule=exact"}, 1,
        "1 of 1 rows have no score");
  fails({"score", file("empty.jsonl", ""), "--reward", "rule=exact"}, 1, "no rows");
  fails({"score"}, 2, "rows is required");
  fails({"nothing"}, 2, "no command 'reward nothing'");
  fails({}, 2, "usage: starling reward score");
  const RewardOutcome help = reward({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.lines.at(0), "usage: starling reward score ROWS ...");
}

TEST_F(RewardScoreCommand, ALineThatIsNoRowIsOneAmongTheOthers) {
  const std::string rows = file("rows.jsonl",
                                "{\"response\": \"3\", \"ground_truth\": \"3\"}\n"
                                "no JSON\n"
                                "{\"response\": \"\\ud800\", \"ground_truth\": \"3\"}\n"
                                "{\"response\": \"3\", \"ground_truth\": \"3\"}\n");
  const RewardOutcome told = reward({"score", rows, "--reward", "rule=exact", "--json"});
  EXPECT_EQ(told.code, 1);
  EXPECT_EQ(told.errors, "error: 2 of 4 rows have no score\n");
  ASSERT_EQ(told.lines.size(), 4u);
  for (const std::size_t good : {0, 3}) EXPECT_EQ(told.object(good)["score"], 1.0);
  for (const std::size_t bad : {1, 2}) {
    EXPECT_EQ(told.object(bad)["score"], nullptr);
    const std::string error = told.object(bad)["error"];
    EXPECT_TRUE(error.starts_with(rows + ":" + std::to_string(bad + 1) + ": not JSON: ")) << error;
  }
}

TEST_F(RewardScoreCommand, AListHasTheAnswersThatAreRight) {
  const std::string rows = file("rows.jsonl", R"({"response": "5", "ground_truth": ["4", "5"]}
{"response": "6", "ground_truth": ["4", 5]}
{"response": "5", "ground_truth": []}
{"response": "5", "ground_truth": [["5"]]}
{"response": "[\"5\"]", "ground_truth": ["5"]}
{"response": "100000000000000000000", "ground_truth": 100000000000000000000}
)");
  const RewardOutcome told = reward({"score", rows, "--reward", "rule=exact", "--json"});
  EXPECT_EQ(told.code, 1);
  ASSERT_EQ(told.lines.size(), 6u);
  for (const std::size_t right : {0, 4, 5}) EXPECT_EQ(told.object(right)["score"], 1.0) << right;
  EXPECT_EQ(told.object(0)["compared"]["ground_truth"], "5");
  EXPECT_EQ(told.object(1)["score"], 0.0);
  EXPECT_EQ(told.object(2)["error"], rows +
                                         ":3: reward rule 'exact': the ground truth is a list "
                                         "without members");
  EXPECT_EQ(told.object(3)["error"],
            rows +
                ":4: reward rule 'exact': the ground truth is a list, whose members are the "
                "answers that are right, and one of them is a list. Write texts, or score by a "
                "custom function");
}

TEST_F(RewardScoreCommand, MathTakesAListAsAlternativesAndATextAsItIs) {
  const std::string rows =
      file("rows.jsonl", R"({"response": "\\boxed{\\frac12}", "ground_truth": ["3", "0.5"]}
{"response": "\\boxed{3}", "ground_truth": "[3, 4]"}
{"response": "\\boxed{[3, 4]}", "ground_truth": "[3, 4]"}
)");
  const RewardOutcome told = reward({"score", rows, "--reward", "rule=math", "--json"});
  EXPECT_EQ(told.code, 0) << told.errors;
  ASSERT_EQ(told.lines.size(), 3u);
  EXPECT_EQ(told.object(0)["score"], 1.0);
  EXPECT_EQ(told.object(1)["score"], 0.0);
  EXPECT_EQ(told.object(2)["score"], 1.0);
}

}  // namespace
}  // namespace rl
