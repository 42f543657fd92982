#include "rl/reward/http_scorer.h"

#include <gtest/gtest.h>

#include "tests/rl/reward/server_fixture.h"

namespace rl {
namespace {

using runtime::ErrorCode;

class HttpScorerTest : public ServerTest {
 protected:
  HttpScorerTest() : ServerTest("reward_server.py") {}

  HttpScorerOptions options(const std::string& path) const {
    HttpScorerOptions options;
    options.url = url(path);
    options.batch_size = 3;
    options.pause = std::chrono::milliseconds(1);
    return options;
  }

  static ScoredBatch score(const HttpScorerOptions& options,
                           const std::vector<std::string>& responses) {
    const auto scorer = HttpScorer::create(options);
    EXPECT_TRUE(scorer.ok()) << scorer.status().to_string();
    std::vector<ScoreRequest> requests;
    for (const std::string& response : responses)
      requests.push_back({.data_source = "x",
                          .response = response,
                          .ground_truth = "",
                          .extra_info = "",
                          .where = "t:1"});
    return scorer.ok() ? (*scorer)->score(requests).value_or(ScoredBatch{}) : ScoredBatch{};
  }
};

TEST_F(HttpScorerTest, ScoresInBatchesAndKeepsTheOrder) {
  std::vector<std::string> responses;
  for (std::size_t i = 0; i < 20; ++i) responses.emplace_back(i, 'a');
  responses[5] = "dict";
  responses[6] = "null";
  const ScoredBatch batch = score(options("/length"), responses);
  ASSERT_EQ(batch.scores.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) {
    if (i != 5 && i != 6) {
      EXPECT_EQ(batch.scores[i].value, static_cast<double>(i));
    }
  }
  EXPECT_EQ(batch.scores[5].value, 0.5);
  EXPECT_EQ(batch.scores[5].extra.at("acc"), 1);
  EXPECT_EQ(batch.scores[6].failure, ScoreFailure::kInvalid);
  EXPECT_TRUE(score(options("/length"), {}).scores.empty());
}

TEST_F(HttpScorerTest, TriesAgainWhenTheServerIsBusy) {
  const ScoredBatch batch = score(options("/busy"), {"ab"});
  ASSERT_EQ(batch.scores.size(), 1U);
  EXPECT_EQ(batch.scores[0].value, 2);
  EXPECT_EQ(batch.counts.retries, 2);
  EXPECT_EQ(batch.counts.errors, 2);
  const ScoredBatch down = score(options("/down"), {"ab"});
  ASSERT_EQ(down.scores.size(), 1U);
  EXPECT_EQ(down.scores[0].failure, ScoreFailure::kError);
  EXPECT_NE(down.scores[0].message.find("answered 503: no more"), std::string::npos)
      << down.scores[0].message;
}

TEST_F(HttpScorerTest, AnswersThatAreNoScores) {
  for (const auto& [path, why] : {std::pair{"/short", "1 scores for 2 samples"},
                                  {"/text", "no {\"scores\": [...]} but hello"},
                                  {"/deep", "no {\"scores\": [...]} but {\"scores\": [[["}}) {
    const ScoredBatch batch = score(options(path), {"a", "b"});
    ASSERT_EQ(batch.scores.size(), 2U);
    EXPECT_EQ(batch.scores[1].failure, ScoreFailure::kInvalid);
    EXPECT_NE(batch.scores[1].message.find(why), std::string::npos) << batch.scores[1].message;
  }
}

TEST_F(HttpScorerTest, ANumberThatIsNoneCostsItsOwnSample) {
  const ScoredBatch batch = score(options("/length"), {"ab", "nan", "abc"});
  ASSERT_EQ(batch.scores.size(), 3U);
  EXPECT_EQ(batch.scores[0].value, 2);
  EXPECT_EQ(batch.scores[1].failure, ScoreFailure::kInvalid);
  EXPECT_EQ(batch.scores[2].value, 3);
  EXPECT_EQ(batch.counts.errors, 0);
}

TEST_F(HttpScorerTest, ASilentServerExceedsTheLimit) {
  HttpScorerOptions silent = options("/hang");
  silent.timeout = std::chrono::milliseconds(500);
  silent.retries = 1;
  const ScoredBatch batch = score(silent, {"a"});
  ASSERT_EQ(batch.scores.size(), 1U);
  EXPECT_EQ(batch.scores[0].failure, ScoreFailure::kTimeout);
  EXPECT_EQ(batch.counts.timeouts, 2);
}

TEST_F(HttpScorerTest, ServersThatCannotBeUsedAreFoundAtOnce) {
  EXPECT_EQ(HttpScorer::create(options("/token")).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(HttpScorer::create(options("/token")).status().message().find("reward.http.auth_env"),
            std::string::npos);
  HttpScorerOptions with_token = options("/token");
  with_token.headers = {"Authorization: Bearer secret"};
  EXPECT_EQ(score(with_token, {"abc"}).scores.at(0).value, 3);
  EXPECT_NE(HttpScorer::create(options("/missing")).status().message().find("answered 404"),
            std::string::npos);
  HttpScorerOptions unreachable = options("/");
  unreachable.url = "http://127.0.0.1:1/score";
  const auto status = HttpScorer::create(unreachable).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_NE(status.message().find("127.0.0.1:1"), std::string::npos) << status.message();
  unreachable.url = "ftp://x";
  EXPECT_EQ(HttpScorer::create(unreachable).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
