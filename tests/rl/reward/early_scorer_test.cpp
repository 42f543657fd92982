#include "rl/reward/early_scorer.h"

#include <gtest/gtest.h>

#include <functional>
#include <semaphore>
#include <set>

#include "rl/reward/http_scorer.h"
#include "tests/rl/reward/server_fixture.h"

namespace rl {
namespace {

ScoreRequest early_request(const std::string& response) {
  return {.data_source = "x",
          .response = response,
          .ground_truth = "",
          .extra_info = "",
          .where = "t:1"};
}

std::vector<ScoreRequest> requests(const std::vector<std::string>& responses) {
  std::vector<ScoreRequest> all;
  for (const std::string& response : responses) all.push_back(early_request(response));
  return all;
}

// Scores by length. "wait" does not return before the gate opens; "wrong" fails the call.
class EarlyLengths : public Scorer {
 public:
  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> asked) override {
    ScoredBatch batch;
    for (const ScoreRequest& one : asked) {
      if (one.response == "wait") gate.acquire();
      if (one.response == "wrong") return runtime::invalid_argument(one.where + ": wrong");
      Score score;
      score.value = static_cast<double>(one.response.size());
      batch.scores.push_back(score);
    }
    batch.counts.retries = 1;
    const std::lock_guard lock(mutex);
    calls.push_back(asked.size());
    for (const ScoreRequest& one : asked) seen.insert(one.response);
    changed.notify_all();
    return batch;
  }

  void wait_for(const std::string& response) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return seen.contains(response); });
  }

  std::counting_semaphore<> gate{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::size_t> calls;
  std::multiset<std::string> seen;
};

class EarlyScorerTest : public ::testing::Test {
 protected:
  void make(const EarlyScoring& options) {
    auto lengths = std::make_unique<EarlyLengths>();
    inner = lengths.get();
    scorer = std::make_unique<EarlyScorer>(std::move(lengths), options);
  }

  std::vector<double> values(const std::vector<std::string>& responses) {
    const auto batch = scorer->score(requests(responses));
    EXPECT_TRUE(batch.ok()) << batch.status().to_string();
    std::vector<double> all;
    for (const Score& score : batch.value_or(ScoredBatch{}).scores) all.push_back(score.value);
    return all;
  }

  EarlyLengths* inner = nullptr;
  std::unique_ptr<EarlyScorer> scorer;
};

TEST_F(EarlyScorerTest, PreparedRequestsAreScoredBeforeTheyAreAskedFor) {
  make({.batch_size = 1, .concurrency = 2});
  scorer->prepare(requests({"a", "bbb"}));
  inner->wait_for("a");
  inner->wait_for("bbb");
  scorer->prepare(requests({"cc"}));
  inner->wait_for("cc");
  EXPECT_EQ(values({"cc", "a", "bbb"}), (std::vector<double>{2, 1, 3}));
  EXPECT_EQ(inner->seen.size(), 3U) << "asked again";
}

TEST_F(EarlyScorerTest, WhatWasNotPreparedIsScoredThen) {
  make({.batch_size = 4, .concurrency = 2});
  EXPECT_EQ(values({"a", "bb"}), (std::vector<double>{1, 2}));
  scorer->prepare(requests({"bb"}));
  EXPECT_EQ(values({"a", "bb", "ccc"}), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values({}), (std::vector<double>{}));
}

TEST_F(EarlyScorerTest, EqualRequestsAreScoredAsOftenAsTheyAreThere) {
  make({.batch_size = 1, .concurrency = 1});
  scorer->prepare(requests({"a", "a"}));
  EXPECT_EQ(values({"a", "a", "a"}), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(inner->seen.count("a"), 3U);
}

TEST_F(EarlyScorerTest, WhileOneIsWaitedForOthersGoOn) {
  make({.batch_size = 1, .concurrency = 2});
  scorer->prepare(requests({"wait", "a", "bb"}));
  inner->wait_for("a");
  inner->wait_for("bb");
  inner->gate.release();
  EXPECT_EQ(values({"wait", "a", "bb"}), (std::vector<double>{4, 1, 2}));
}

TEST_F(EarlyScorerTest, WhatComesWhileACallIsOnItsWayIsAskedTogether) {
  make({.batch_size = 2, .concurrency = 1});
  scorer->prepare(requests({"wait"}));
  scorer->prepare(requests({"a"}));
  scorer->prepare(requests({"bb"}));
  scorer->prepare(requests({"ccc"}));
  inner->gate.release();
  EXPECT_EQ(values({"wait", "a", "bb", "ccc"}), (std::vector<double>{4, 1, 2, 3}));
  std::size_t asked = 0;
  for (const std::size_t call : inner->calls) {
    EXPECT_LE(call, 2U);
    asked += call;
  }
  EXPECT_EQ(asked, 4U);
  EXPECT_LE(inner->calls.size(), 3U);
}

TEST_F(EarlyScorerTest, UnclaimedScoresAreForgottenAndCounted) {
  make({.batch_size = 1, .concurrency = 1});
  scorer->prepare(requests({"aaaa"}));
  inner->wait_for("aaaa");
  const auto batch = scorer->score(requests({"b"}));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->scores.size(), 1U);
  EXPECT_EQ(batch->counts.retries, 2);
  EXPECT_EQ(scorer->score(requests({"b"}))->counts.retries, 1);
}

TEST_F(EarlyScorerTest, AFailureIsToldWhenScoresAreAskedForAndNotAgain) {
  make({.batch_size = 1, .concurrency = 1});
  scorer->prepare(requests({"wrong", "a"}));
  const auto failed = scorer->score(requests({"wrong", "a"}));
  EXPECT_EQ(failed.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(values({"a"}), (std::vector<double>{1}));
}

TEST_F(EarlyScorerTest, AnEndWithPreparedRequestsWaitsForTheCallsThatAreOnTheirWay) {
  make({.batch_size = 1, .concurrency = 1});
  scorer->prepare(requests({"a", "bb", "ccc"}));
  scorer.reset();
}

class EarlyHttpTest : public ServerTest {
 protected:
  EarlyHttpTest() : ServerTest("reward_server.py") {}
};

TEST_F(EarlyHttpTest, AServersScoresAreThoseOfAllTogether) {
  HttpScorerOptions options;
  options.url = url("/length");
  options.batch_size = 3;
  std::vector<std::string> responses;
  for (std::size_t i = 0; i < 20; ++i) responses.emplace_back(i, 'a');
  responses[5] = "dict";
  responses[6] = "null";
  auto plain = HttpScorer::create(options);
  ASSERT_TRUE(plain.ok()) << plain.status().to_string();
  const auto expected = (*plain)->score(requests(responses));
  ASSERT_TRUE(expected.ok());
  EarlyScorer early(std::move(*plain), {.batch_size = 3, .concurrency = 2});
  for (std::size_t i = responses.size(); i-- > 2;) early.prepare(requests({responses[i]}));
  const auto found = early.score(requests(responses));
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->scores.size(), expected->scores.size());
  for (std::size_t i = 0; i < responses.size(); ++i) {
    EXPECT_EQ(found->scores[i].ok(), expected->scores[i].ok()) << i;
    EXPECT_EQ(found->scores[i].value, expected->scores[i].value) << i;
    EXPECT_EQ(found->scores[i].extra, expected->scores[i].extra) << i;
  }
}

}  // namespace
}  // namespace rl
