// Rules next to a sandbox, of which a test says what it answers.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rl/reward/rule.h"
#include "rl/reward/sandbox_scorer.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using support::expect_failure;

// Scores programs by their length, and keeps what it was asked.
class LengthSandbox : public Scorer {
 public:
  struct Seen {
    std::vector<std::string> scored, prepared;
  };

  LengthSandbox(Seen& seen, runtime::Status status) : seen_(seen), status_(std::move(status)) {}

  bool prepares() const override { return true; }
  void prepare(std::span<const ScoreRequest> requests) override {
    for (const ScoreRequest& request : requests) seen_.prepared.push_back(request.response);
  }
  Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override {
    ScoredBatch batch;
    for (const ScoreRequest& request : requests) {
      seen_.scored.push_back(request.response);
      Score score;
      score.value = static_cast<double>(request.response.size());
      batch.scores.push_back(std::move(score));
    }
    batch.counts.retries = 2;
    if (!status_.ok()) return status_;
    return batch;
  }

 private:
  Seen& seen_;
  runtime::Status status_;
};

class SandboxedRulesTest : public ::testing::Test {
 protected:
  SandboxedRules rules(runtime::Status status = {}) {
    return SandboxedRules(std::make_unique<LengthSandbox>(seen_, std::move(status)));
  }
  static ScoreRequest program(const std::string& response, const std::string& truth = "{}") {
    return {.data_source = std::string(code_data_sources().front()),
            .response = response,
            .ground_truth = truth,
            .extra_info = "",
            .where = "p:1"};
  }
  static ScoreRequest letters(const std::string& response, const std::string& source = "toy") {
    return {.data_source = source,
            .response = response,
            .ground_truth = "ab",
            .extra_info = "",
            .where = "t:2"};
  }

  LengthSandbox::Seen seen_;
};

TEST_F(SandboxedRulesTest, EachSampleHasTheScoreOfItsOwnScorer) {
  SandboxedRules scorer = rules();
  const std::vector<ScoreRequest> requests = {letters("ab"), program("xyz"), letters("ax"),
                                              program("x"), program("xy")};
  const Result<ScoredBatch> batch = scorer.score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  std::vector<double> values;
  for (const Score& score : batch->scores) values.push_back(score.value);
  EXPECT_EQ(values, (std::vector<double>{1, 3, 0.5, 1, 2}));
  EXPECT_EQ(seen_.scored, (std::vector<std::string>{"xyz", "x", "xy"}));
  EXPECT_EQ(batch->counts.retries, 2);
}

TEST_F(SandboxedRulesTest, ProgramsAloneAreBegunEarly) {
  SandboxedRules scorer = rules();
  EXPECT_TRUE(scorer.prepares());
  scorer.prepare(std::vector<ScoreRequest>{letters("ab"), program("x")});
  EXPECT_EQ(seen_.prepared, std::vector<std::string>{"x"});
}

TEST_F(SandboxedRulesTest, AWrongRowIsFoundBeforeAnyProgramRuns) {
  SandboxedRules scorer = rules();
  const std::vector<ScoreRequest> requests = {program("x"), letters("a", "unheard of")};
  expect_failure(scorer.score(requests).status(), ErrorCode::kInvalidArgument,
                 {"t:2", "unheard of"});
  EXPECT_TRUE(seen_.scored.empty());
}

TEST_F(SandboxedRulesTest, WhatTheSandboxFailsByIsTheFailure) {
  SandboxedRules scorer = rules(runtime::unavailable("the sandbox is away"));
  const std::vector<ScoreRequest> requests = {letters("ab"), program("x")};
  expect_failure(scorer.score(requests).status(), ErrorCode::kUnavailable, {"the sandbox is away"});
}

TEST_F(SandboxedRulesTest, RowsAreCheckedWithoutASandbox) {
  const SandboxedRules scorer(nullptr);
  EXPECT_FALSE(scorer.prepares());
  EXPECT_TRUE(scorer.check_row(letters("")).ok());
  EXPECT_TRUE(scorer.check_row(program("", R"({"inputs": ["1"], "outputs": ["2"]})")).ok());
  EXPECT_FALSE(scorer.check_row(program("", "no test cases")).ok());
  EXPECT_FALSE(scorer.check_row(letters("", "unheard of")).ok());
}

}  // namespace
}  // namespace rl
