// The actors of reinforcement learning: what they refuse before a worker is asked, and a score.
#include "rl/actor/actors.h"

#include "rl/data/toy.h"
#include "rl/tokenizer/tokenizer.h"
#include "tests/rl/actor/actor_fixture.h"
#include "tests/rl/worker/toy_samples.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;

class ActorsTest : public ActorTest {
 protected:
  static RolloutBatch samples(const std::vector<std::string>& responses) {
    return testing::toy_samples(*Tokenizer::from_json(toy_tokenizer_json(), "toy"), responses);
  }
};

TEST_F(ActorsTest, NoneIsMadeWithoutTheConfigurationOfADriver) {
  const WorkerSpec spec = spec_of_no_driver();
  for (const runtime::Status& status :
       {PolicyActor::create(runtime_, spec).status(), CriticActor::create(runtime_, spec).status(),
        ReferenceActor::create(runtime_, spec).status(),
        RewardActor::create(runtime_, spec).status()})
    expect_failure(status, ErrorCode::kInvalidArgument, {"configuration"});
}

// The reward looks up the task of a response by its prompt's number.
TEST_F(ActorsTest, APolicyTellsARewardOfNoPromptWithoutATask) {
  auto policy = PolicyActor::create(
      runtime_, spec({"actor_rollout_ref.model.path=" + model_.path().string(),
                      "data.max_prompt_length=16", "data.max_response_length=16"}));
  ASSERT_TRUE(policy.ok()) << policy.status().to_string();
  PromptBatch prompts;
  prompts.ids.append(std::vector<std::int32_t>{5, 6});
  prompts.seeds = {1};
  expect_failure((*policy)->generate_for(prompts, false, {}, {}).status(),
                 ErrorCode::kInvalidArgument, {"a task for each prompt"});
}

TEST_F(ActorsTest, AReferenceRefusesPenaltiesOfOtherSamples) {
  auto reference = ReferenceActor::create(
      runtime_, spec({"actor_rollout_ref.model.path=" + model_.path().string(),
                      "data.max_prompt_length=16", "data.max_response_length=16"}));
  ASSERT_TRUE(reference.ok()) << reference.status().to_string();
  const RolloutBatch batch = samples({"ab", "b"});
  const std::vector<float> logprobs(batch.responses.values.size(), -1.0F);
  const std::string wrong = "1 KL penalties for 2 samples";
  expect_failure((*reference)->score_some(batch, {0, 1}, logprobs, {0.5}, {}).status(),
                 ErrorCode::kInvalidArgument, {"teacher", wrong});
  expect_failure((*reference)->exclude_samples(batch, logprobs, {0.5}, {0, 1}).status(),
                 ErrorCode::kInvalidArgument, {"reference", wrong});
  EXPECT_EQ((*reference)->exclude_samples(batch, logprobs, {0.5}, {0}).status().code(),
            ErrorCode::kInvalidArgument)
      << "marks of one sample";
}

TEST_F(ActorsTest, ARewardScoresByTheTokenizerOfTheModel) {
  auto reward = RewardActor::create(runtime_, spec({"reward.rule=letters"}));
  ASSERT_TRUE(reward.ok()) << reward.status().to_string();
  const auto report = (*reward)->score(samples({"ab", "aa", "b"}), {{"toy", "ab", "toy:1", ""}});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->scores, (std::vector<double>{1.0, 0.5, 0.0}));
}

}  // namespace
}  // namespace rl
