#include "rl/run/rl/score_reader.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

using Numbers = std::vector<double>;

class ScoreReaderTest : public ::testing::Test {
 protected:
  // Two prompts with two samples each, of one worker.
  FakeBatches batches_;
  StepBatch batch_ = fake_batch(batches_, 2, 1, 2);
  StepPrompts prompts_ = fake_prompts(2, 1);
  FakeScore reward_{batches_};
  StepTimer timer_;
};

TEST_F(ScoreReaderTest, TheGreedyResponsesScoreIsTheBaselineOfItsPrompt) {
  FakeGenerate generate(batches_, 1, 2);
  reward_.of = [](std::int64_t prompt, std::int64_t) { return static_cast<double>(prompt) + 0.5; };
  GreedyBaseline reader(generate, reward_);
  EXPECT_TRUE(reader.scores_others());
  ASSERT_TRUE(reader.compare(prompts_.batches, batch_, timer_).ok());
  EXPECT_EQ(batch_.all<double>([](const Sample& sample) { return *sample.baseline; }),
            (Numbers{0.5, 0.5, 1.5, 1.5}));
  EXPECT_EQ(batch_.all<bool>(&Sample::is_scored), std::vector<bool>(4, true));
}

TEST_F(ScoreReaderTest, SamplesWhoseGreedyResponseHasNoScoreCountAsNotScored) {
  FakeGenerate generate(batches_, 1, 2);
  reward_.of = [](std::int64_t prompt, std::int64_t) {
    return prompt == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
  };
  GreedyBaseline reader(generate, reward_);
  ASSERT_TRUE(reader.compare(prompts_.batches, batch_, timer_).ok());
  EXPECT_EQ(batch_.all<bool>(&Sample::is_scored), (std::vector<bool>{false, false, true, true}));
}

TEST_F(ScoreReaderTest, ComponentsStandInTheOrderOfTheirKeys) {
  batch_.for_each([](Sample& sample) { sample.extras = {{"a", 1.0}, {"b", 2.0}, {"c", 3.0}}; });
  batch_.shares[0].groups[0].samples[0].is_scored = false;
  ScoreComponents reader({"c", "a"}, "algorithm.gdpo_reward_keys", false);
  EXPECT_FALSE(reader.scores_others());
  ASSERT_TRUE(reader.read(batch_).ok());
  const auto components =
      batch_.by_worker([](const Sample& sample) { return sample.components; })[0];
  EXPECT_EQ(components[0], (Numbers{0, 0})) << "it has no score";
  EXPECT_EQ(components[1], (Numbers{3, 1}));
}

TEST_F(ScoreReaderTest, AScoreStandsInForANumberThatIsNotGivenWhereThatIsAllowed) {
  batch_.for_each([](Sample& sample) { sample.score = 0.25; });
  ScoreComponents may({"acc"}, "key", true), may_not({"acc"}, "the.key", false);
  ASSERT_TRUE(may.read(batch_).ok());
  EXPECT_EQ(batch_.shares[0].groups[1].samples[1].components, Numbers{0.25});
  const runtime::Status alone = may_not.read(batch_);
  EXPECT_EQ(alone.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(alone.message().find("the.key: the reward gave no number 'acc'"), std::string::npos)
      << alone.message();
  EXPECT_NE(alone.message().find("a score alone"), std::string::npos) << alone.message();
  batch_.for_each([](Sample& sample) { sample.extras = {{"b", 1.0}, {"format", 1.0}}; });
  EXPECT_NE(may_not.read(batch_).message().find("it gives b, format"), std::string::npos);
}

}  // namespace
}  // namespace rl
