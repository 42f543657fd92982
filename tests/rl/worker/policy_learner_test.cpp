// The policy's learning half, against the losses and steps written out. Ranks are threads.
#include "rl/worker/policy_learner.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/save.h"
#include "rl/model/tensor_span.h"
#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Status;
using Tokens = std::vector<std::int32_t>;

constexpr double kRate = 0.5;

// Four samples of two prompts; in the third a tool has written the second token.
RolloutBatch four_samples() {
  RolloutBatch batch;
  batch.prompts.append(Tokens{4, 9, 6});
  batch.prompts.append(Tokens{12, 5});
  batch.prompt_of = {0, 0, 1, 1};
  for (const Tokens& response : {Tokens{7, 8}, Tokens{10, 4, 5, 11}, Tokens{6, 6, 9}, Tokens{13}})
    batch.responses.append(response);
  batch.response_mask = {1, 1, 1, 1, 1, 1, 1, 0, 1, 1};
  batch.logprobs.assign(9, 0.0F);
  batch.stopped = {1, 1, 0, 1};
  return batch;
}

PackedBatch sequence_of(const RolloutBatch& batch, std::int64_t sample) {
  const auto prompt = batch.prompts.row(batch.prompt_of[static_cast<std::size_t>(sample)]);
  const auto response = batch.responses.row(sample);
  Tokens sequence(prompt.begin(), prompt.end());
  sequence.insert(sequence.end(), response.begin(), response.end());
  PackedBatch packed;
  if (batch.response_mask.empty())
    packed.append(sequence, std::ssize(prompt));
  else
    packed.append(sequence, std::ssize(prompt), batch.mask_of(sample));
  return packed;
}

class PolicyLearnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.model = folder_.file("model");
    ASSERT_TRUE(
        make_toy_model(options_.model, {.layers = 2, .hidden_size = 32, .intermediate_size = 64})
            .ok());
    options_.learner.optimizer = OptimizerKind::kSgd;
    options_.learner.grad_norm_max = 0.0;
  }

  std::unique_ptr<PolicyLearner> learner(
      std::unique_ptr<Communicator> ranks = make_single_communicator()) const {
    TrainingRanks training(std::move(ranks));
    auto model = load_policy(options_, training);
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return std::make_unique<PolicyLearner>(options_, std::move(*model), std::move(training));
  }
  std::unique_ptr<Transformer> plain_model() const {
    auto model = Transformer::load(options_.model, {.threads = 1});
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    (*model)->enable_gradients();
    return std::move(*model);
  }
  // As they are generated: by the policy itself.
  RolloutBatch drawn_samples() const {
    RolloutBatch batch = four_samples();
    const auto model = plain_model();
    batch.logprobs.clear();
    for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
      const auto logprobs = model->token_logprobs(sequence_of(batch, sample));
      EXPECT_TRUE(logprobs.ok());
      for (const float value : elements_of(logprobs->logprobs_N.detach().contiguous()))
        batch.logprobs.push_back(value);
    }
    return batch;
  }
  static UpdatePlan plan(std::vector<MicroBatch> micro_batches = {{0, 1}, {1, 4}}) {
    return {.advantages = {1.0F, -0.5F, 2.0F, -1.0F},
            .mini_batches = {{.first_sample = 0,
                              .last_sample = 4,
                              .tokens_total = 9,
                              .samples_total = 4,
                              .micro_batches = std::move(micro_batches)}},
            .learning_rate = kRate};
  }

  // Weights after one step of gradient descent on a loss that is a sum over samples; its norm.
  struct Step {
    at::Tensor weights;
    double norm = 0.0;
  };
  Step step_by_hand(const RolloutBatch& batch,
                    const std::function<at::Tensor(std::int64_t sample,
                                                   const at::Tensor& logprobs)>& loss) const {
    const auto model = plain_model();
    for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
      const auto logprobs = model->token_logprobs(sequence_of(batch, sample));
      EXPECT_TRUE(logprobs.ok());
      loss(sample, logprobs->logprobs_N).backward();
    }
    const at::Tensor gradient = model->gradients().arena();
    return {model->parameters().arena() - kRate * gradient, gradient.norm().item<double>()};
  }
  static void expect_weights(const PolicyLearner& learner, const Step& step) {
    const at::Tensor& weights = learner.learner().model().parameters().arena();
    EXPECT_LE((weights - step.weights).abs().max().item<double>(), 1e-6);
    EXPECT_GT(step.norm, 1e-2) << "it is a step";
  }
  // That of the policy gradient, whose ratios are 1.
  Step policy_step(const RolloutBatch& batch) const {
    return step_by_hand(batch, [](std::int64_t sample, const at::Tensor& logprobs) {
      const double advantage = plan().advantages[static_cast<std::size_t>(sample)];
      return -advantage * logprobs.sum() / 9.0;
    });
  }

  const support::TemporaryFolder folder_;
  PolicyOptions options_;
};

TEST_F(PolicyLearnerTest, LogProbabilitiesAreThoseOfEachSampleByItself) {
  const auto learner = this->learner();
  const RolloutBatch batch = drawn_samples();
  for (const std::vector<MicroBatch>& passes :
       {std::vector<MicroBatch>{}, {{0, 2}, {2, 3}, {3, 4}}}) {
    const auto logprobs = learner->logprobs(batch, passes);
    ASSERT_TRUE(logprobs.ok()) << logprobs.status().to_string();
    EXPECT_EQ(*logprobs, batch.logprobs);
  }
  const std::vector<MicroBatch> of_others{{0, 3}};
  EXPECT_EQ(learner->logprobs(batch, of_others).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(PolicyLearnerTest, AnUpdateIsAStepOfThePolicyGradient) {
  const RolloutBatch batch = drawn_samples();
  const Step expected = policy_step(batch);
  for (const std::vector<MicroBatch>& passes :
       {std::vector<MicroBatch>{}, {{0, 1}, {1, 4}}, {{0, 4}, {4, 4}}}) {
    const auto learner = this->learner();
    const auto metrics = learner->update(batch, {}, plan(passes));
    ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
    expect_weights(*learner, expected);
    EXPECT_NEAR(metrics->at("actor/grad_norm"), expected.norm, 1e-5 * expected.norm);
    EXPECT_EQ(metrics->at("actor/skipped_updates"), 0.0);
  }
}

// The samples of each prompt are on one rank.
TEST_F(PolicyLearnerTest, TwoRanksTakeTheStepOfOne) {
  const RolloutBatch batch = drawn_samples();
  const Step expected = policy_step(batch);
  auto links = make_thread_links(2);
  std::vector<double> norms(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto learner = this->learner(std::make_unique<Communicator>(std::move(links[rank])));
      const std::vector<std::uint8_t> others{rank == 0 ? std::vector<std::uint8_t>{0, 0, 1, 1}
                                                       : std::vector<std::uint8_t>{1, 1, 0, 0}};
      const auto own = without_samples(batch, others);
      ASSERT_TRUE(own.ok()) << own.status().to_string();
      UpdatePlan of_rank = plan({{0, 2}});
      of_rank.advantages = {plan().advantages[2 * rank], plan().advantages[2 * rank + 1]};
      of_rank.mini_batches.front().last_sample = 2;
      const auto metrics = learner->update(*own, {}, of_rank);
      ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
      expect_weights(*learner, expected);
      EXPECT_TRUE(learner->check_weights().ok());
      norms[rank] = metrics->at("actor/grad_norm");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(norms[0] + norms[1], expected.norm, 1e-5 * expected.norm) << "each has its part";
}

TEST_F(PolicyLearnerTest, ARankThatFailsIsAnErrorOfTheOther) {
  const RolloutBatch batch = drawn_samples();
  auto links = make_thread_links(2);
  std::vector<Status> ended(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto learner = this->learner(std::make_unique<Communicator>(std::move(links[rank])));
      UpdatePlan of_rank = plan();
      if (rank == 1) of_rank.advantages.pop_back();
      ended[rank] = learner->update(batch, {}, of_rank).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended[1].code(), ErrorCode::kInvalidArgument) << ended[1].to_string();
  EXPECT_EQ(ended[0].code(), ErrorCode::kUnavailable) << ended[0].to_string();
}

TEST_F(PolicyLearnerTest, SizesThatDoNotFitChangeNothing) {
  const auto learner = this->learner();
  const std::uint64_t before = learner->weights_checksum();
  const RolloutBatch batch = drawn_samples();
  const auto refused = [&](const RolloutBatch& samples, const UpdatePlan& plan,
                           const std::vector<float>& reference = {},
                           const std::vector<float>& teacher = {}) {
    const Status status = learner->update(samples, reference, plan, {}, teacher).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << status.to_string();
    EXPECT_EQ(learner->weights_checksum(), before);
    return status.message();
  };
  RolloutBatch cut = batch;
  cut.logprobs.pop_back();
  refused(cut, plan());
  UpdatePlan few = plan();
  few.advantages.pop_back();
  EXPECT_EQ(refused(batch, few), "update: one advantage a sample is needed");
  UpdatePlan outside = plan({});
  outside.mini_batches.front().last_sample = 5;
  refused(batch, outside);
  refused(batch, plan({{0, 3}}));
  EXPECT_EQ(refused(batch, plan(), batch.logprobs), "update: 9 reference log-probs for 9 tokens");
  EXPECT_EQ(refused(batch, plan(), {}, {1.0F}), "update: 1 teacher log-probs for 9 tokens");
  const Status uncredited = learner->estimate(batch, {}, {.scores = {1.0, 2.0, 3.0, 4.0}}).status();
  EXPECT_EQ(uncredited.message(), "estimate: this policy has no critic on its backbone");
}

TEST_F(PolicyLearnerTest, ASupervisedStepIsOneOnTheMeanLikelihood) {
  DemonstrationBatch demonstrations;
  RolloutBatch same = four_samples();
  same.response_mask.clear();
  for (std::int64_t sample = 0; sample < same.samples(); ++sample) {
    const auto prompt = same.prompts.row(same.prompt_of[static_cast<std::size_t>(sample)]);
    demonstrations.prompts.append(prompt);
    demonstrations.responses.append(same.responses.row(sample));
  }
  double loss = 0.0;
  const Step expected = step_by_hand(same, [&](std::int64_t, const at::Tensor& logprobs) {
    const at::Tensor part = -logprobs.sum() / 10.0;
    loss += part.item<double>();
    return part;
  });
  const auto learner = this->learner();
  const auto metrics = learner->supervise(
      demonstrations,
      {.tokens_total = 10, .learning_rate = kRate, .micro_batches = {{0, 3}, {3, 4}}});
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  expect_weights(*learner, expected);
  EXPECT_NEAR(metrics->at("sft/loss"), loss, 1e-5);
  EXPECT_NEAR(metrics->at("sft/grad_norm"), expected.norm, 1e-5 * expected.norm);

  EXPECT_EQ(learner->supervise(demonstrations, {.tokens_total = 0}).status().code(),
            ErrorCode::kInvalidArgument);
  demonstrations.responses.append(Tokens{1});
  EXPECT_EQ(learner->supervise(demonstrations, {.tokens_total = 10}).status().code(),
            ErrorCode::kInvalidArgument);
}

// Of REINFORCE++ without a discount: what is left of the reward from each token on.
TEST_F(PolicyLearnerTest, AdvantagesOfTokensAreWhatFollowsOfTheReward) {
  options_.estimates.estimator = &advantage_estimator("reinforce_plus_plus");
  const auto learner = this->learner();
  const RolloutBatch batch = drawn_samples();
  const std::vector<double> scores = {1.0, -1.0, 0.5, 0.0};
  std::vector<float> reference;
  for (std::size_t i = 0; i < batch.logprobs.size(); ++i)
    reference.push_back(batch.logprobs[i] + 0.01F * static_cast<float>(i));
  const auto estimates =
      learner->estimate(batch, reference, {.scores = scores, .kl_coefficient = 0.1});
  ASSERT_TRUE(estimates.ok()) << estimates.status().to_string();
  ASSERT_EQ(estimates->advantages.size(), batch.logprobs.size());
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const std::int64_t first = batch.learned_before(sample);
    double follows = scores[static_cast<std::size_t>(sample)];
    for (std::int64_t token = batch.learned_tokens(sample) - 1; token >= 0; --token) {
      const auto at = static_cast<std::size_t>(first + token);
      follows -= 0.1 * (batch.logprobs[at] - reference[at]);
      EXPECT_NEAR(estimates->advantages[at], follows, 1e-5) << "token " << at;
    }
  }
}

TEST_F(PolicyLearnerTest, WhatItSavesIsLoadedAndGeneratesAsItIs) {
  const auto learner = this->learner();
  const RolloutBatch batch = drawn_samples();
  ASSERT_TRUE(learner->update(batch, {}, plan()).ok());
  const fs::path folder = folder_.file("saved");
  const auto files = learner->save(folder);
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  for (const fs::path& file : *files) EXPECT_TRUE(fs::exists(folder / file)) << file;
  EXPECT_TRUE(fs::exists(folder / kModelFolder / "tokenizer.json"));

  const auto other = this->learner();
  EXPECT_NE(other->weights_checksum(), learner->weights_checksum());
  ASSERT_TRUE(other->load(folder).ok());
  EXPECT_EQ(other->weights_checksum(), learner->weights_checksum());
  EXPECT_EQ(other->load(folder_.file("nothing")).ok(), false);
}

}  // namespace
}  // namespace rl
