// The optimizer steps of a step's samples, over roles that note what they are given.
#include "rl/run/rl/update_phase.h"

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

class UpdatePhaseTest : public ::testing::Test {
 protected:
  // Two prompts of two samples on each of two workers.
  UpdatePhaseTest() {
    credit_.use.resize(2);
    float advantage = 0.0F;
    batch_.for_each([&](Sample& sample) { sample.advantage = ++advantage; });
    for (WorkerShare& share : batch_.shares) {
      share.reference.logprobs = logprobs_.put({-1.0F});
      share.taught.logprobs = logprobs_.put({-2.0F});
    }
  }
  runtime::Result<std::int64_t> update(const UpdatePhaseOptions& options, std::int64_t step = 1) {
    UpdatePhase phase(options, calls_);
    return phase.update(batch_, credit_, step, metrics_, timer_);
  }

  // Expects that those are what was said of each worker's samples.
  void expect_said(const LogprobRefs& refs, Referenced WorkerShare::*said) const {
    ASSERT_EQ(refs.size(), batch_.shares.size());
    for (std::size_t worker = 0; worker < refs.size(); ++worker)
      EXPECT_EQ(refs[worker].state(), (batch_.shares[worker].*said).logprobs.state()) << worker;
  }

  FakeBatches batches_;
  FakeObjects<std::vector<float>> logprobs_;
  FakeUpdate calls_;
  StepBatch batch_ = fake_batch(batches_, 4, 2, 2);
  Credit credit_;
  Metrics metrics_;
  StepTimer timer_;
};

TEST_F(UpdatePhaseTest, StepsCountFromOneAndRatesFromTheFirst) {
  UpdatePhaseOptions options;
  options.policy_rate = {.peak = 0.4, .warmup_steps = 4};
  options.critic_rate = {.peak = 0.8, .warmup_steps = 2};
  calls_.critic = true;
  EXPECT_EQ(*update(options), 1) << "one mini-batch";
  EXPECT_DOUBLE_EQ(calls_.plans[1].learning_rate, 0.1);
  EXPECT_DOUBLE_EQ(calls_.critic_plans[1].learning_rate, 0.4);
  EXPECT_DOUBLE_EQ(metrics_.at("actor/lr"), 0.1);
  EXPECT_DOUBLE_EQ(metrics_.at("critic/lr"), 0.4);
  ASSERT_TRUE(update(options, 9).ok());
  EXPECT_DOUBLE_EQ(metrics_.at("actor/lr"), 0.4);
}

TEST_F(UpdatePhaseTest, APolicyWaitsUntilItsCriticIsWarm) {
  calls_.critic = true;
  ASSERT_TRUE(update({.policy_rate = {}, .critic_warmup = 3}, 2).ok());
  EXPECT_EQ(calls_.calls, (std::vector<std::string>{"critic"}));
  EXPECT_FALSE(metrics_.contains("actor/lr"));
  ASSERT_TRUE(update({.policy_rate = {}, .critic_warmup = 3}, 3).ok());
  EXPECT_EQ(calls_.calls, (std::vector<std::string>{"critic", "critic", "policy"}));
  EXPECT_FALSE(calls_.plans[0].critic_only);
}

// Its value head is on the policy's model, which is called for it.
TEST_F(UpdatePhaseTest, ACriticWithoutItsOwnModelWarmsUpInThePolicy) {
  ASSERT_TRUE(update({.policy_rate = {}, .critic_warmup = 3}, 2).ok());
  EXPECT_EQ(calls_.calls, (std::vector<std::string>{"policy"}));
  EXPECT_TRUE(calls_.plans[0].critic_only);
  EXPECT_TRUE(calls_.plans[1].critic_only);
}

TEST_F(UpdatePhaseTest, EachWorkerHasTheAdvantagesOfItsSamplesUnlessTokensHaveThem) {
  ASSERT_TRUE(update({.policy_rate = {}}).ok());
  EXPECT_EQ(calls_.plans[0].advantages, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(calls_.plans[1].advantages, (std::vector<float>{5, 6, 7, 8}));
  credit_.per_token = true;
  ASSERT_TRUE(update({.policy_rate = {}}).ok());
  EXPECT_TRUE(calls_.plans[0].advantages.empty());
}

TEST_F(UpdatePhaseTest, PassesAreCutByEachRolesOwnLimits) {
  calls_.critic = true;
  ASSERT_TRUE(update({.policy_rate = {}}).ok());
  const std::vector<MicroBatch> threes{{0, 3}, {3, 4}};
  const std::vector<MicroBatch> twos{{0, 2}, {2, 4}};
  EXPECT_EQ(calls_.plans[1].mini_batches[0].micro_batches, threes);
  EXPECT_EQ(calls_.critic_plans[1].mini_batches[0].micro_batches, twos);
}

TEST_F(UpdatePhaseTest, OnlyAnObjectiveThatReadsTheReferenceIsGivenIt) {
  ASSERT_TRUE(update({.policy_rate = {}}).ok());
  EXPECT_TRUE(calls_.references.empty());
  expect_said(calls_.taught, &WorkerShare::taught);
  ASSERT_TRUE(update({.policy_rate = {}, .reads_reference = true}).ok());
  expect_said(calls_.references, &WorkerShare::reference);
}

TEST_F(UpdatePhaseTest, ACriticThatFailsLeavesThePolicyAsItIs) {
  calls_.critic = true;
  calls_.critic_failure = runtime::task_failed("out of memory");
  EXPECT_EQ(update({.policy_rate = {}}).status(), calls_.critic_failure);
  EXPECT_EQ(calls_.calls, (std::vector<std::string>{"critic"}));
}

}  // namespace
}  // namespace rl
