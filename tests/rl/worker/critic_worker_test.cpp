// The critic's numbers, and that it learns.
#include "rl/worker/critic_worker.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <thread>

#include "rl/algo/masked.h"
#include "rl/algo/token_estimator.h"
#include "rl/comm/gloo_communicator.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

// Two prompts, two responses each, of different lengths.
RolloutBatch critic_samples() {
  RolloutBatch batch;
  batch.prompts.append(std::vector<std::int32_t>{3, 4, 5});
  batch.prompts.append(std::vector<std::int32_t>{6, 7});
  batch.prompt_of = {0, 0, 1, 1};
  for (const auto& row :
       std::vector<std::vector<std::int32_t>>{{8, 9, 10}, {11}, {12, 13}, {14, 15, 16, 17}})
    batch.responses.append(row);
  batch.logprobs = {-1, -2, -1.5, -0.5, -3, -1, -2, -2, -1, -0.25F};
  batch.stopped = {1, 1, 0, 1};
  return batch;
}

const std::vector<double> kScores = {1, 0, 0.5, 1};

TEST(TokenEstimates, WithoutDiscountReturnsAreTheScoresStillToCome) {
  const RolloutBatch batch = critic_samples();
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) values.push_back(0.1F * static_cast<float>(i));
  EstimateOptions options;
  options.gae.whiten = false;
  const auto estimates = estimate_tokens(batch, values, {}, {kScores}, options);
  ASSERT_TRUE(estimates.ok()) << estimates.status().to_string();
  const std::vector<float> returns{1, 1, 1, 0, 0.5, 0.5, 1, 1, 1, 1};
  for (std::size_t i = 0; i < returns.size(); ++i) {
    EXPECT_NEAR(estimates->returns[i], returns[i], 1e-6) << i;
    EXPECT_NEAR(estimates->advantages[i], returns[i] - values[i], 1e-6) << i;
  }
  EXPECT_EQ(estimates->values, values);
}

// With lambda 0 an advantage is one step's surprise, by hand.
TEST(TokenEstimates, TakesTheKlOffEachTokensReward) {
  const RolloutBatch batch = critic_samples();
  const std::vector<float> values(10, 0.5F);
  std::vector<float> reference = batch.logprobs;
  reference[1] -= 2.0F;  // k1: the policy is 2 nats above the reference there
  EstimateOptions options;
  options.gae = {.gamma = 0.9, .lambda = 0.0, .whiten = false};
  const auto estimates =
      estimate_tokens(batch, values, reference,
                      {.scores = kScores, .baselines = {}, .kl_coefficient = 0.1}, options);
  ASSERT_TRUE(estimates.ok()) << estimates.status().to_string();
  EXPECT_NEAR(estimates->advantages[0], 0.9 * 0.5 - 0.5, 1e-6);
  EXPECT_NEAR(estimates->advantages[1], -0.2 + 0.9 * 0.5 - 0.5, 1e-6);
  EXPECT_NEAR(estimates->advantages[2], 1.0 - 0.5, 1e-6);
  EXPECT_NEAR(estimates->advantages[3], 0.0 - 0.5, 1e-6);
}

TEST(TokenEstimates, RefusesWhatIsNotOfThisBatch) {
  const RolloutBatch batch = critic_samples();
  const std::vector<float> values(10, 0.0F);
  EXPECT_EQ(estimate_tokens(batch, {}, {}, {kScores}, {}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(estimate_tokens(batch, values, {}, {std::vector<double>{1}}, {}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(estimate_tokens(batch, values, values, {kScores}, {}).status().code(),
            runtime::ErrorCode::kInvalidArgument);  // no KL is taken off
}

// The greedy response's score for each token.
class GreedyScores : public TokenEstimator {
 public:
  GreedyScores() : TokenEstimator({.name = "test_greedy", .needs_greedy_response = true}) {}
  Advantages advantages(const RewardedTokens& tokens, const GaeOptions&) const override {
    EXPECT_FALSE(tokens.values_BT.defined());
    EXPECT_FALSE(tokens.logprobs_BT.defined());
    EXPECT_EQ(tokens.groups, (std::vector<std::int64_t>{0, 0, 1, 1}));
    return {tokens.baselines_B.unsqueeze(1) * tokens.mask_BT, tokens.rewards_BT};
  }
};

TEST(TokenEstimates, AreThoseOfAnyClassThatGetsWhatItsTraitsAskFor) {
  const GreedyScores estimator;
  const EstimateOptions options{.estimator = &estimator};
  const auto estimates = estimate_tokens(critic_samples(), {}, {},
                                         {.scores = kScores, .baselines = {1, 2, 3, 4}}, options);
  ASSERT_TRUE(estimates.ok()) << estimates.status().to_string();
  EXPECT_EQ(estimates->advantages, (std::vector<float>{1, 1, 1, 2, 3, 3, 4, 4, 4, 4}));
  EXPECT_EQ(estimates->returns, (std::vector<float>{0, 0, 1, 0, 0, 0.5F, 0, 0, 0, 1}));
  EXPECT_EQ(estimate_tokens(critic_samples(), {}, {}, {kScores}, options).status().code(),
            runtime::ErrorCode::kInvalidArgument);  // without the greedy responses' scores
}

// Whitened over two workers as over one batch.
TEST(TokenEstimates, WhiteningOverWorkersIsThatOfAllTokens) {
  TokenEstimates a, b;
  for (int i = 0; i < 37; ++i)
    (i % 3 == 0 ? a : b).advantages.push_back(std::sin(static_cast<float>(i)) * 3.0F + 1.0F);
  for (TokenEstimates* part : {&a, &b}) part->values = part->returns = part->advantages;
  EstimateSummary all = summarize(a, {});
  all.add(summarize(b, {}));
  const AdvantageScaling scaling = AdvantageScaling::whitening(all.advantages);
  const auto tensor = [](std::vector<float>& values) {
    return at::from_blob(values.data(), {1, static_cast<std::int64_t>(values.size())}, at::kFloat);
  };
  const at::Tensor together = at::cat({tensor(a.advantages), tensor(b.advantages)}, 1);
  const at::Tensor whitened = masked_whiten(together, at::ones_like(together));
  EXPECT_LT(((together - scaling.mean) * scaling.scale - whitened).abs().max().item<double>(),
            1e-5);
  EXPECT_EQ(all.metrics().at("critic/vf_explained_var"), 1.0);
  const Moments scaled = all.advantages.scaled(scaling.mean, scaling.scale);
  EXPECT_NEAR(scaled.mean(), 0.0, 1e-9);
  EXPECT_NEAR(scaled.variance(), 1.0, 1e-6);
  EXPECT_NEAR(scaled.largest, whitened.max().item<double>(), 1e-5);
  EXPECT_NEAR(scaled.smallest, whitened.min().item<double>(), 1e-5);
}

class CriticWorkerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("starling-critic-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static CriticOptions options() {
    CriticOptions options;
    options.model = folder_;
    options.estimates.gae.whiten = false;
    options.learner.adamw.weight_decay = 0.0F;
    return options;
  }

  static std::unique_ptr<CriticWorker> make(
      const CriticOptions& options,
      std::unique_ptr<Communicator> communicator = make_single_communicator()) {
    auto worker = CriticWorker::create(options, std::move(communicator));
    EXPECT_TRUE(worker.ok()) << worker.status().to_string();
    return std::move(*worker);
  }

  static inline fs::path folder_;
};

TEST_F(CriticWorkerTest, LearnsWhatResponsesAreWorth) {
  const auto critic = make(options());
  const RolloutBatch batch = critic_samples();
  double first = 0.0;
  double last = 0.0;
  for (int round = 0; round < 60; ++round) {
    const auto estimates = critic->estimate(batch, {}, {kScores});
    ASSERT_TRUE(estimates.ok()) << estimates.status().to_string();
    const auto metrics = critic->update(batch, *estimates, {{}, {{0, 4, 10, 4}}, 3e-3, {}, false});
    ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
    if (round == 0) first = metrics->at("critic/vf_loss");
    last = metrics->at("critic/vf_loss");
    EXPECT_GT(metrics->at("critic/grad_norm"), 0.0);
  }
  EXPECT_LT(last, 0.1 * first);
  const auto learned = critic->estimate(batch, {}, {kScores});
  EXPECT_NEAR(
      learned->values[0], 0.5,
      0.2);  // before its first token a response to prompt 0 may still be the good or the bad one
  EXPECT_NEAR(learned->values[2], 1.0, 0.2);
  EXPECT_NEAR(learned->values[5], 0.5, 0.2);
  EXPECT_NEAR(learned->values[9], 1.0, 0.2);
}

// Values belong to the token before: what a response's first token is predicted from is the prompt,
// which its samples share.
TEST_F(CriticWorkerTest, ValuesDependOnWhatCameBeforeAlone) {
  const auto critic = make(options());
  const auto estimates = critic->estimate(critic_samples(), {}, {kScores});
  ASSERT_TRUE(estimates.ok());
  EXPECT_EQ(estimates->values[0],
            estimates->values[3]);  // first tokens of both responses to prompt 0
  EXPECT_EQ(estimates->values[4], estimates->values[6]);
  EXPECT_NE(estimates->values[0], estimates->values[4]);
  EstimateTask one_by_one{kScores};
  one_by_one.micro_batches = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 4}};
  EXPECT_EQ(critic->estimate(critic_samples(), {}, one_by_one)->values, estimates->values);
  one_by_one.micro_batches.pop_back();
  one_by_one.micro_batches.pop_back();
  EXPECT_EQ(critic->estimate(critic_samples(), {}, one_by_one).status().code(),
            runtime::ErrorCode::kInvalidArgument)
      << "a sample is in no pass";
}

TEST_F(CriticWorkerTest, TwoWorkersTakeTheStepOfOne) {
  const RolloutBatch batch = critic_samples();
  const auto one = make(options());
  ASSERT_TRUE(one->update(batch, *one->estimate(batch, {}, {kScores}),
                          {{}, {{0, 4, 10, 4}}, 1e-2, {}, false})
                  .ok());
  std::vector<std::unique_ptr<CriticWorker>> workers(2);
  const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      RolloutBatch mine;
      mine.prompts.append(batch.prompts.row(rank));
      mine.prompt_of = {0, 0};
      for (const std::int64_t sample : {2 * rank, 2 * rank + 1}) {
        mine.responses.append(batch.responses.row(sample));
        mine.stopped.push_back(1);
      }
      mine.logprobs.assign(mine.responses.values.size(), -1.0F);
      auto group =
          make_gloo_communicator(rendezvous, {.rank = rank, .size = 2, .host = "127.0.0.1"});
      ASSERT_TRUE(group.ok()) << group.status().to_string();
      auto& worker = workers[static_cast<std::size_t>(rank)];
      worker = make(options(), std::move(*group));
      const auto estimates =
          worker->estimate(mine, {},
                           {std::vector<double>{kScores[static_cast<std::size_t>(2 * rank)],
                                                kScores[static_cast<std::size_t>(2 * rank + 1)]}});
      ASSERT_TRUE(estimates.ok());
      const auto metrics = worker->update(mine, *estimates, {{}, {{0, 2, 10, 4}}, 1e-2, {}, false});
      ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
      EXPECT_TRUE(worker->check_weights().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const at::Tensor& a = one->learner().model().parameters().arena();
  const at::Tensor& b = workers[0]->learner().model().parameters().arena();
  EXPECT_LT(((a - b).norm() / a.norm()).item<double>(), 1e-4);
}

TEST_F(CriticWorkerTest, LayersComputedAgainGiveTheSameBits) {
  CriticOptions recompute = options();
  recompute.recompute_layers = true;
  const RolloutBatch batch = critic_samples();
  const auto kept = make(options());
  const auto again = make(recompute);
  const auto estimates = kept->estimate(batch, {}, {kScores});
  ASSERT_TRUE(kept->update(batch, *estimates, {{}, {{0, 4, 10, 4}}, 1e-2, {}, false}).ok());
  ASSERT_TRUE(again->update(batch, *estimates, {{}, {{0, 4, 10, 4}}, 1e-2, {}, false}).ok());
  EXPECT_EQ(kept->learner().weights_checksum(), again->learner().weights_checksum());
}

TEST_F(CriticWorkerTest, InBf16ValuesAreNearThoseInFp32) {
  CriticOptions bf16 = options();
  bf16.bf16 = true;
  const RolloutBatch batch = critic_samples();
  const auto exact = make(options());
  const auto rounded = make(bf16);
  const auto values = exact->estimate(batch, {}, {kScores})->values;
  const auto near = rounded->estimate(batch, {}, {kScores})->values;
  EXPECT_NE(values, near);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], near[i], 0.02) << i;
  const auto metrics = rounded->update(batch, *rounded->estimate(batch, {}, {kScores}),
                                       {{}, {{0, 4, 10, 4}}, 1e-2, {}, false});
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  EXPECT_GT(metrics->at("critic/grad_norm"), 0.0);
}

TEST_F(CriticWorkerTest, RefusesEstimatesOfAnotherBatch) {
  const auto critic = make(options());
  EXPECT_EQ(
      critic->update(critic_samples(), {}, {{}, {{0, 4, 10, 4}}, 1e-2, {}, false}).status().code(),
      runtime::ErrorCode::kInvalidArgument);
  const auto estimates = critic->estimate(critic_samples(), {}, {kScores});
  EXPECT_EQ(critic->update(critic_samples(), *estimates, {{}, {{0, 5, 10, 4}}, 1e-2, {}, false})
                .status()
                .code(),
            runtime::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
