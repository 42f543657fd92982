// Answers and ground truths of public sources, with what is to be said of each pair
// (check_with_math_verify.py compares the same with the package math-verify).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/reward/math_answer.h"

namespace rl {
namespace {

TEST(MathPairs, AreJudgedAsTheFileSays) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/reward/math_pairs.jsonl");
  std::map<std::string, int> counts;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const std::string answer = row["answer"], truth = row["truth"];
    EXPECT_EQ(equivalent(answer, truth), row["right"].get<bool>())
        << answer << "   " << truth << "   (" << normal_form(answer) << " | " << normal_form(truth)
        << ")";
    ++counts[row["source"].get<std::string>().substr(0, 7)];
  }
  EXPECT_GE(counts["MATH-50"], 500);
  EXPECT_GE(counts["math-ve"], 180);
  EXPECT_GE(counts["AIME 20"], 60);
}

}  // namespace
}  // namespace rl
