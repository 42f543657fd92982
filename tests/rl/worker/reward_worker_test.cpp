#include "rl/worker/reward_worker.h"

#include <gtest/gtest.h>

#include "rl/data/toy.h"
#include "tests/rl/worker/toy_samples.h"

namespace rl {
namespace {

class RewardWorkerTest : public ::testing::Test {
 protected:
  RewardWorkerTest() : tokenizer_(*Tokenizer::from_json(toy_tokenizer_json(), "toy")) {}

  RolloutBatch batch(const std::vector<std::string>& responses) const {
    return testing::toy_samples(tokenizer_, responses);
  }

  RewardWorker worker(const std::string& rule) const {
    auto reward = RewardFunction::from_config(
        *Config::load({std::nullopt, {"reward.rule=" + rule}}), 1, true);
    EXPECT_TRUE(reward.ok()) << reward.status().to_string();
    return RewardWorker(tokenizer_, std::move(*reward));
  }

  Tokenizer tokenizer_;
};

TEST_F(RewardWorkerTest, ScoresTextWithoutSpecialTokens) {
  RewardWorker worker = this->worker("letters");
  const auto scores = worker.score(batch({"ab", "aa", "b"}), {{"toy", "ab", "toy:1", ""}});
  ASSERT_TRUE(scores.ok()) << scores.status().to_string();
  EXPECT_EQ(scores->scores, (std::vector<double>{1.0, 0.5, 0.0}));
}

TEST_F(RewardWorkerTest, ShowsTheFirstSamplesAsText) {
  RewardWorker worker = this->worker("letters");
  const auto texts = worker.texts(batch({"ab", "aa"}), {{"toy", "ab", "toy:1", ""}}, {1.0, 0.5}, 1);
  ASSERT_TRUE(texts.ok());
  ASSERT_EQ(texts->size(), 1u);
  const SampleText& text = texts->front();
  EXPECT_EQ(std::tie(text.prompt, text.response, text.ground_truth, text.score),
            std::make_tuple("sort ba", "ab", "ab", 1.0));
  EXPECT_EQ(text.tokens, (std::vector<std::string>{"a", "b", ""}))
      << "the end of the sequence says nothing";
  EXPECT_EQ(text.logprobs.size(), text.tokens.size());
}

TEST_F(RewardWorkerTest, NamesTheRowWhoseGroundTruthTheRuleCannotUse) {
  RewardWorker worker = this->worker("number");
  const auto scores = worker.score(batch({"ab"}), {{"x", "abc", "train.jsonl:12", ""}});
  ASSERT_FALSE(scores.ok());
  EXPECT_NE(scores.status().message().find("train.jsonl:12"), std::string::npos);
}

TEST_F(RewardWorkerTest, RefusesTasksThatDoNotFit) {
  RewardWorker worker = this->worker("letters");
  EXPECT_EQ(worker.score(batch({"ab"}), {}).status().code(), runtime::ErrorCode::kInvalidArgument);
  RolloutBatch broken = batch({"ab"});
  broken.prompt_of = {7};
  EXPECT_EQ(worker.score(broken, {{"toy", "ab", "toy:1", ""}}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
