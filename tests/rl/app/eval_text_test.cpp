#include "rl/app/eval_text.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

std::vector<EvaluationSummary> two_sources() {
  EvaluationSummary toy;
  toy.data_source = "toy";
  toy.prompts = 2;
  toy.answers = 8;
  toy.errors = 1;
  toy.accuracy = {.value = 0.5, .low = 0.25, .high = 0.75};
  toy.pass = {{2, {.value = 0.625, .low = 0.5, .high = 0.875}}};
  toy.majority = {{4, {.value = 1.0, .low = 0.375, .high = 1.0}}};
  toy.score = -0.25;
  toy.tokens = 12.5;
  toy.cut = 0.125;
  EvaluationSummary of_no_source;
  of_no_source.prompts = of_no_source.answers = 1;
  return {toy, of_no_source};
}

TEST(EvalText, HasABlockOfEachDataSource) {
  EXPECT_EQ(summary_text(two_sources()),
            "toy: 2 prompts, 8 answers, 1 errors\n"
            "  right      0.500  (0.250 to 0.750)\n"
            "  pass@2     0.625  (0.500 to 0.875)\n"
            "  maj@4      1.000  (0.375 to 1.000)\n"
            "  score      -0.250\n"
            "  tokens     12.5, 12.5 % cut off\n"
            "\n"
            "(no data source): 1 prompts, 1 answers, 0 errors\n"
            "  right      0.000  (0.000 to 1.000)\n"
            "  score      0.000\n"
            "  tokens     0.0, 0.0 % cut off\n");
  EXPECT_EQ(summary_text({}), "");
}

TEST(EvalText, ProgramsGetTheSameFigures) {
  const nlohmann::ordered_json all = summary_json(two_sources());
  EXPECT_EQ(all[0], nlohmann::ordered_json::parse(R"({
    "data_source": "toy", "prompts": 2, "answers": 8, "errors": 1,
    "accuracy": {"value": 0.5, "low": 0.25, "high": 0.75},
    "pass@2": {"value": 0.625, "low": 0.5, "high": 0.875},
    "maj@4": {"value": 1.0, "low": 0.375, "high": 1.0},
    "score": -0.25, "tokens": 12.5, "cut": 0.125})"));
  EXPECT_EQ(all[1]["data_source"], "") << "programs have no use for a stand-in";
  EXPECT_EQ(summary_json({}).dump(), "[]");
}

}  // namespace
}  // namespace rl
