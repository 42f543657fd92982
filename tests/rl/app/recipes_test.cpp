// The recipes in examples/: their data, their configuration and what scores fit together. Their
// models are not here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/reward/reward_function.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

const std::string kExamples = STARLING_SOURCE_DIR "/examples/";

struct Recipe {
  std::string config;
  std::vector<std::string> overrides;
};

class RecipeTest : public ::testing::Test {
 protected:
  void make(const std::string& maker, const std::string& arguments = "200") {
    ASSERT_EQ(std::system((kExamples + maker + " " + folder_.file("data") + " " + arguments +
                           " > /dev/null")
                              .c_str()),
              0);
  }

  runtime::Result<Config> config(const Recipe& recipe) const {
    ConfigSources sources;
    sources.file = kExamples + recipe.config;
    sources.overrides = {"data.val_files=" + folder_.file("data/train.jsonl"),
                         "data.val_max_samples=-1", "reward.num_workers=1"};
    sources.overrides.insert(sources.overrides.end(), recipe.overrides.begin(),
                             recipe.overrides.end());
    return Config::load(sources);
  }

  // The scores of what `respond` makes of each row, by the recipe's reward.
  template <class Respond>
  std::vector<double> scores(const Recipe& recipe, const Respond& respond) const {
    const auto loaded = config(recipe);
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    if (!loaded.ok()) return {};
    const auto options = dataset_options(*loaded, Split::kValidation);
    EXPECT_TRUE(options.ok() && *options) << options.status().to_string();
    const auto data = Dataset::load(**options);
    EXPECT_TRUE(data.ok()) << data.status().to_string();
    auto reward = RewardFunction::from_config(*loaded, 1, true);
    EXPECT_TRUE(reward.ok()) << reward.status().to_string();
    if (!data.ok() || !reward.ok()) return {};
    std::vector<ScoreRequest> requests;
    for (const DataRow& row : data->rows())
      requests.push_back({.data_source = row.data_source,
                          .response = respond(row),
                          .ground_truth = row.ground_truth,
                          .extra_info = {},
                          .where = row.where});
    const auto report = (*reward)->score(requests, std::vector<std::int64_t>(requests.size(), 1));
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? report->scores : std::vector<double>();
  }

  support::TemporaryFolder folder_;
};

const std::vector<std::string> kGsm8kColumns = {
    "data.prompt_template='{question}'", "data.answer_after='####'", "data.prompt_form=chat"};

TEST_F(RecipeTest, CountdownsTasksCanBeSolvedAndWrongFormulasGetLittle) {
  make("countdown/make_data.sh");
  const Recipe recipe{
      .config = "countdown/grpo.yaml",
      .overrides = {"reward.custom_reward_function.path=" + kExamples + "countdown/reward.py"}};
  EXPECT_EQ(scores(recipe, [](const DataRow& row) { return "so: " + row.response.value_or(""); }),
            std::vector<double>(200, 1.0));
  // A number that is not among those given; no formula; code.
  EXPECT_EQ(scores(recipe, [](const DataRow&) { return "<answer>1001 - 1000 * 1</answer>"; }),
            std::vector<double>(200, 0.1));
  EXPECT_EQ(
      scores(recipe, [](const DataRow&) { return "<answer>__import__('os').getpid()</answer>"; }),
      std::vector<double>(200, 0.0));
  EXPECT_EQ(scores(recipe, [](const DataRow&) { return "I do not know"; }),
            std::vector<double>(200, 0.0));
}

TEST_F(RecipeTest, LetterCountingsAnswersAreRight) {
  make("letter_counting/make_data.sh");
  const Recipe recipe{.config = "letter_counting/grpo.yaml", .overrides = {}};
  const auto count = [](const DataRow& row) {
    const std::string text = row.prompt.at(0).at("content").get<std::string>();
    const char letter = text.at(text.find("letter ") + 7);
    const std::size_t open = text.find('"');
    const std::string word = text.substr(open + 1, text.rfind('"') - open - 1);
    return std::to_string(std::count(word.begin(), word.end(), letter));
  };
  EXPECT_EQ(scores(recipe, count), std::vector<double>(200, 1.0));
  EXPECT_EQ(scores(recipe, [&](const DataRow& row) { return count(row) + "1"; }),
            std::vector<double>(200, 0.0));
}

TEST_F(RecipeTest, SumsToValidateOnAreNotTrainedOn) {
  make("arithmetic/make_data.sh");
  std::map<std::string, std::multiset<std::string>> questions;
  for (const char* file : {"train", "test"}) {
    std::ifstream in(folder_.file("data/" + std::string(file) + ".jsonl"));
    for (std::string line; std::getline(in, line);)
      questions[file].insert(
          nlohmann::json::parse(line)["prompt"][0]["content"].get<std::string>());
  }
  EXPECT_EQ(questions["train"].size(), 200u);
  EXPECT_GE(questions["test"].size(), 10u);
  for (const std::string& question : questions["test"]) {
    EXPECT_EQ(questions["test"].count(question), 1u) << question;
    EXPECT_EQ(questions["train"].count(question), 0u) << question;
  }
}

TEST_F(RecipeTest, SumsAsEquationsAreShownRightAndScoredByTheirLastNumber) {
  make("arithmetic/make_data.sh", "200 19 1 equation");
  std::ifstream in(folder_.file("data/train.jsonl"));
  int rows = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const auto row = nlohmann::json::parse(line);
    int a = 0, b = 0;
    char sign = 0;
    ASSERT_EQ(std::sscanf(row["prompt"][0]["content"].get<std::string>().c_str(),
                          "What is %d %c %d?", &a, &sign, &b),
              3)
        << line;
    const int answer = sign == '+' ? a + b : a - b;
    EXPECT_EQ(row["response"], std::to_string(a) + " " + sign + " " + std::to_string(b) + " = " +
                                   std::to_string(answer));
    EXPECT_EQ(row["reward_model"]["ground_truth"], std::to_string(answer));
  }
  EXPECT_EQ(rows, 200);
  const Recipe recipe{"arithmetic/grpo.yaml", {}};
  EXPECT_EQ(scores(recipe, [](const DataRow& row) { return row.response.value_or(""); }),
            std::vector<double>(200, 1.0));
  EXPECT_EQ(scores(recipe, [](const DataRow& row) { return row.ground_truth + " = 7777"; }),
            std::vector<double>(200, 0.0));
}

TEST_F(RecipeTest, PairsHaveARightAndAWrongAnswerToTheSameSum) {
  make("preferences/make_data.sh");
  std::ifstream file(folder_.file("data/train.jsonl"));
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const auto row = nlohmann::json::parse(line);
    const std::string question = row["prompt"][0]["content"];
    int a = 0, b = 0;
    char sign = 0;
    ASSERT_EQ(std::sscanf(question.c_str(), "What is %d %c %d?", &a, &sign, &b), 3) << question;
    const int right = sign == '+' ? a + b : a - b;
    EXPECT_EQ(row["chosen"], std::to_string(right)) << question;
    const int off = std::abs(std::stoi(row["rejected"].get<std::string>()) - right);
    EXPECT_TRUE(off >= 1 && off <= 3) << line;
  }
  EXPECT_EQ(rows, 200);
}

TEST_F(RecipeTest, Gsm8ksFormIsReadAndScoredByBothRecipes) {
  make("gsm8k/make_sample.sh");
  for (const char* config : {"gsm8k/grpo.yaml", "gsm8k/ppo.yaml"}) {
    const Recipe recipe{.config = config, .overrides = kGsm8kColumns};
    EXPECT_EQ(
        scores(recipe, [](const DataRow& row) { return "4 apples #### " + row.ground_truth; }),
        std::vector<double>(200, 1.0))
        << config;
    EXPECT_EQ(scores(recipe, [](const DataRow& row) { return row.ground_truth + " #### 1000"; }),
              std::vector<double>(200, 0.0))
        << config;
  }
}

}  // namespace
}  // namespace rl
