#include "rl/reward/rule_scorer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using support::expect_failure;

ScoreRequest answered(const std::string& source, const std::string& response,
                      const std::string& truth, bool truth_is_json = false) {
  ScoreRequest request{.data_source = source,
                       .response = response,
                       .ground_truth = truth,
                       .extra_info = "",
                       .where = "t.jsonl:7"};
  request.ground_truth_is_json = truth_is_json;
  return request;
}

RuleScorer scorer_by(const std::string& rule, const nlohmann::ordered_json& options = nullptr) {
  return RuleScorer(*Rule::create(rule, options));
}

std::vector<double> scores_by(RuleScorer scorer, const std::vector<ScoreRequest>& requests) {
  const Result<ScoredBatch> batch = scorer.score(requests);
  EXPECT_TRUE(batch.ok()) << batch.status().to_string();
  std::vector<double> values;
  for (const Score& score : batch.value_or(ScoredBatch()).scores) values.push_back(score.value);
  return values;
}

TEST(RuleScorer, EachRowIsScoredByTheRuleOfItsDataSource) {
  const std::vector<ScoreRequest> rows = {answered("openai/gsm8k", "#### 4", "4"),
                                          answered("toy", "ab", "ax"),
                                          answered("arithmetic", "it is 5", "5")};
  RuleScorer scorer;
  const Result<ScoredBatch> batch = scorer.score(rows);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  ASSERT_EQ(batch->scores.size(), 3u);
  EXPECT_EQ(batch->scores[0].rule, "gsm8k");
  EXPECT_EQ(batch->scores[0].value, 1);
  EXPECT_EQ(batch->scores[1].rule, "letters");
  EXPECT_EQ(batch->scores[1].value, 0.5);
  EXPECT_EQ(batch->scores[2].rule, "number");
  EXPECT_TRUE(batch->scores[2].compared);
}

TEST(RuleScorer, OneRuleIsForAllDataSources) {
  EXPECT_EQ(scores_by(scorer_by("exact"), {answered("toy", "a", "a"), answered("", "a", "b")}),
            (std::vector<double>{1, 0}));
}

TEST(RuleScorer, ARowThatNoRuleCanJudgeEndsTheCallByItsName) {
  RuleScorer by_source;
  const std::vector<ScoreRequest> unknown = {answered("toy", "a", "a"), answered("mine", "a", "a")};
  expect_failure(by_source.score(unknown).status(), ErrorCode::kInvalidArgument,
                 {"t.jsonl:7", "'mine'"});
  expect_failure(by_source.check_row(unknown[1]), ErrorCode::kInvalidArgument, {"'mine'"});
  RuleScorer numbers = scorer_by("number");
  const std::vector<ScoreRequest> words = {answered("toy", "1", "one")};
  expect_failure(numbers.score(words).status(), ErrorCode::kInvalidArgument,
                 {"t.jsonl:7", "'one'"});
  expect_failure(numbers.check_row(words[0]), ErrorCode::kInvalidArgument, {"'one'"});
}

TEST(RuleScorer, APatternThatBacktracksCostsOneSampleItsScore) {
  RuleScorer scorer = scorer_by("regex", {{"pattern", "^(a+)+$"}});
  const std::vector<ScoreRequest> rows = {answered("", std::string(64, 'a') + "b", "a"),
                                          answered("", "aaa", "aaa")};
  const Result<ScoredBatch> batch = scorer.score(rows);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  ASSERT_EQ(batch->scores.size(), 2u);
  EXPECT_EQ(batch->scores[0].failure, ScoreFailure::kError);
  EXPECT_FALSE(batch->scores[0].message.empty());
  EXPECT_TRUE(batch->scores[1].ok());
  EXPECT_EQ(batch->scores[1].value, 1);
  EXPECT_EQ(batch->counts.errors, 1);
}

TEST(RuleScorer, OfAListEachMemberIsRightAndTheBestCounts) {
  const std::string list = R"(["abc", "ab", 7])";
  EXPECT_EQ(
      scores_by(scorer_by("exact"), {answered("", "ab", list, true), answered("", "7", list, true),
                                     answered("", "abcd", list, true)}),
      (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(scores_by(scorer_by("letters"), {answered("", "abx", R"(["xbc", "abc", "x"])", true)}),
            (std::vector<double>{2.0 / 3.0}));
  EXPECT_EQ(scores_by(scorer_by("exact"), {answered("", list, list, true)}),
            (std::vector<double>{1}))
      << "the list itself, which a response may have to write";
  EXPECT_EQ(scores_by(scorer_by("exact"), {answered("", "ab", list)}), (std::vector<double>{0}))
      << "a text that looks like a list";
}

TEST(RuleScorer, AListHasMembersThatTheRuleCanUse) {
  RuleScorer numbers = scorer_by("number");
  const std::pair<const char*, const char*> unusable[] = {
      {"[]", "without members"}, {R"([[1]])", "one of them is"}, {R"([1, "two"])", "'two'"}};
  for (const auto& [list, why] : unusable) {
    const std::vector<ScoreRequest> rows = {answered("", "1", list, true)};
    expect_failure(numbers.check_row(rows[0]), ErrorCode::kInvalidArgument, {why});
    expect_failure(numbers.score(rows).status(), ErrorCode::kInvalidArgument, {"t.jsonl:7", why});
  }
  EXPECT_TRUE(numbers.check_row(answered("", "", R"([1, "2"])", true)).ok());
}

TEST(RuleScorer, NoRequestsAreNoScores) { EXPECT_TRUE(scores_by(RuleScorer(), {}).empty()); }

}  // namespace
}  // namespace rl
