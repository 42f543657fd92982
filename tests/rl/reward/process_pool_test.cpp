// The protocol, with programs that keep to it and some that do not.
#include "rl/reward/process_pool.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/rl/reward/scripted_pool.h"

namespace rl {
namespace {

using testing::scripted_pool;

std::vector<PoolAnswer> run(ProcessPool& pool, std::size_t calls) {
  ScoreCounts counts;
  std::vector<nlohmann::json> asked;
  for (std::size_t i = 0; i < calls; ++i) asked.push_back({{"number", i}});
  auto answers = pool.run(asked, counts);
  EXPECT_TRUE(answers.ok()) << answers.status().to_string();
  return answers.ok() ? *answers : std::vector<PoolAnswer>(calls);
}

constexpr const char* kWhy =
    "it answered with the id of no call that it has: code that it runs has written to its "
    "connection";

TEST(ProcessPool, AnAnswerHasTheIdOfItsCall) {
  const auto pool = scripted_pool(
      "def answers(request):\n"
      "    return [{'id': request['id'], 'value': request['number'], 'ids': len(set(seen)), "
      "'length': len(request['id'])}]\n");
  ASSERT_TRUE(pool);
  const auto answers = run(*pool, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i].failure, ScoreFailure::kNone) << answers[i].why;
    EXPECT_EQ(answers[i].message, (nlohmann::json{{"value", i}, {"ids", i + 1}, {"length", 32}}))
        << "each call has its own id";
  }
}

TEST(ProcessPool, AnAnswerWithAnotherIdOrNoneIsAFailure) {
  for (const char* id : {"'id': 'f' * 32, ", "'id': None, ", "'id': 7, ", ""}) {
    const auto pool = scripted_pool(
        "def answers(request):\n"
        "    return [{" +
        std::string(id) + "'score': 1e9}, {'id': request['id'], 'score': 1}]\n");
    ASSERT_TRUE(pool);
    const auto answers = run(*pool, 1);
    EXPECT_EQ(answers[0].failure, ScoreFailure::kCrash) << id;
    EXPECT_EQ(answers[0].why, kWhy);
  }
}

// The first call's id again, for the second call.
TEST(ProcessPool, AnIdCountsOnce) {
  const auto pool = scripted_pool(
      "def answers(request):\n"
      "    return [{'id': seen[0], 'score': 1}]\n");
  ASSERT_TRUE(pool);
  const auto answers = run(*pool, 2);
  EXPECT_EQ(answers[0].failure, ScoreFailure::kNone);
  EXPECT_EQ(answers[1].failure, ScoreFailure::kCrash);
  EXPECT_EQ(answers[1].why, kWhy);
}

// What is written ahead of a call is no answer to it, and ends the process that wrote it.
TEST(ProcessPool, AnAnswerAheadOfItsCallIsNone) {
  const auto pool = scripted_pool(
      "def answers(request):\n"
      "    return [{'id': request['id'], 'score': os.getpid()}, {'id': request['id'], 'score': "
      "1e9}]\n");
  ASSERT_TRUE(pool);
  const auto first = run(*pool, 1);
  EXPECT_EQ(first[0].failure, ScoreFailure::kNone);
  const auto next = run(*pool, 1);
  EXPECT_TRUE(next[0].failure == ScoreFailure::kCrash ||
              (next[0].message.contains("score") && next[0].message["score"] != 1e9));
}

}  // namespace
}  // namespace rl
