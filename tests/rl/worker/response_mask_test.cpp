// Samples with tokens in between that a tool or a user wrote: they are read, and nothing of them is
// learned.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "rl/algo/masked.h"
#include "rl/algo/token_advantage.h"
#include "rl/worker/policy_worker.h"
#include "rl/worker/reference_worker.h"
#include "rl/worker/token_estimates.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class ResponseMaskTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("starling-mask-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static PolicyOptions options() {
    PolicyOptions options;
    options.model = folder_;
    options.training = {.samples = 1, .response_tokens_max = 16};
    options.positions_max = 48;
    return options;
  }

  static std::unique_ptr<PolicyWorker> make(const PolicyOptions& options) {
    auto worker = PolicyWorker::create(options, make_single_communicator());
    EXPECT_TRUE(worker.ok()) << worker.status().to_string();
    return std::move(*worker);
  }

  // Two answers to one prompt: one in two turns with three tokens of a tool between them, one in a
  // single turn.
  static RolloutBatch batch() {
    RolloutBatch batch;
    batch.prompts.append(std::vector<std::int32_t>{2, 7, 8, 9, 1, 3});
    batch.prompt_of = {0, 0};
    batch.responses.append(std::vector<std::int32_t>{10, 11, 1, 2, 14, 3, 12, 1});
    batch.responses.append(std::vector<std::int32_t>{9, 8, 1});
    batch.response_mask = {1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1};
    batch.logprobs = {-1.0F, -2.0F, -1.5F, -0.5F, -0.75F, -1.25F, -3.0F, -0.25F};
    batch.stopped = {1, 1};
    return batch;
  }

  static inline fs::path folder_;
};

TEST_F(ResponseMaskTest, LogprobsAreThoseOfTheWholeSequenceWithoutTheTokensInBetween) {
  const auto worker = make(options());
  RolloutBatch masked = batch();
  RolloutBatch whole = masked;
  whole.response_mask.clear();
  whole.logprobs.assign(whole.responses.values.size(), 0.0F);
  const auto some = worker->logprobs(masked);
  const auto all = worker->logprobs(whole);
  ASSERT_TRUE(some.ok() && all.ok());
  const std::vector<float>& a = *all;
  EXPECT_EQ(*some, (std::vector<float>{a[0], a[1], a[2], a[6], a[7], a[8], a[9], a[10]}));
}

TEST_F(ResponseMaskTest, ATokenInBetweenIsReadByThoseBehindIt) {
  const auto worker = make(options());
  RolloutBatch one = batch();
  RolloutBatch other = one;
  other.responses.values[4] = 20;  // of the tool's
  const auto before = worker->logprobs(one);
  const auto after = worker->logprobs(other);
  ASSERT_TRUE(before.ok() && after.ok());
  for (const std::size_t i : {0, 1, 2, 5, 6, 7}) EXPECT_EQ((*before)[i], (*after)[i]) << i;
  EXPECT_NE((*before)[3], (*after)[3]);
}

// PPO's loss by hand, as verl writes it over padded rows with a mask: ratio clipped, a mean over
// the tokens of the mask.
TEST_F(ResponseMaskTest, TheLossIsVerlsOverTheMask) {
  PolicyOptions settings = options();
  settings.learner.adamw.weight_decay = 0.0F;
  const auto worker = make(settings);
  const RolloutBatch samples = batch();
  const auto now = worker->logprobs(samples);
  ASSERT_TRUE(now.ok());
  const std::vector<float> advantages{1.0F, -0.5F};
  double sum = 0.0;
  for (std::size_t i = 0; i < 8; ++i) {
    const double advantage = advantages[i < 5 ? 0 : 1];
    const double ratio = std::exp(double{(*now)[i]} - double{samples.logprobs[i]});
    const double low = 1 - settings.objective.clip.low, high = 1 + settings.objective.clip.high;
    double loss = std::max(-advantage * ratio, -advantage * std::clamp(ratio, low, high));
    if (advantage < 0 && settings.objective.clip.dual)
      loss = std::min(loss, -advantage * *settings.objective.clip.dual);
    sum += loss;
  }
  const std::vector<std::vector<std::int64_t>> learned{summarize(samples).learned_tokens};
  const auto plan = plan_mini_batches(shard_prompts(1, 1, 1), 2, learned);
  EXPECT_EQ(plan[0][0].tokens_total, 8);
  const auto report = worker->update(samples, {}, {advantages, plan[0], 1e-3});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_NEAR(report->at("actor/pg_loss"), sum / 8, 1e-5);
}

TEST_F(ResponseMaskTest, AMaskOfOnesIsNoMask) {
  const RolloutBatch samples = [] {
    RolloutBatch all = batch();
    all.response_mask.clear();
    all.logprobs.assign(all.responses.values.size(), -1.0F);
    return all;
  }();
  RolloutBatch ones = samples;
  ones.response_mask.assign(ones.responses.values.size(), 1);
  std::uint64_t sums[2];
  for (const bool masked : {false, true}) {
    const auto worker = make(options());
    const RolloutBatch& used = masked ? ones : samples;
    const std::vector<std::vector<std::int64_t>> learned{summarize(used).learned_tokens};
    ASSERT_TRUE(
        worker
            ->update(
                used, {},
                {{1.0F, -1.0F}, plan_mini_batches(shard_prompts(1, 1, 1), 2, learned)[0], 1e-2})
            .ok());
    sums[masked ? 1 : 0] = worker->weights_checksum();
  }
  EXPECT_EQ(sums[0], sums[1]);
}

// verl's recursion skips what the mask leaves out: value and advantage of the learned token behind
// are carried over it.
TEST_F(ResponseMaskTest, AdvantagesPassOverTheTokensInBetween) {
  const RolloutBatch samples = batch();
  const std::vector<float> values{0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F};
  EstimateOptions options;
  options.gae = {.gamma = 0.9, .lambda = 0.8, .whiten = false};
  const auto estimates = estimate_tokens(samples, values, {}, {.scores = {2.0, -1.0}}, options);
  ASSERT_TRUE(estimates.ok()) << estimates.status().to_string();
  ASSERT_EQ(estimates->advantages.size(), 8U);
  const auto verl = [&](std::vector<double> padded_values, std::vector<double> rewards,
                        std::vector<int> mask) {
    double next = 0, last = 0;
    std::vector<double> reversed;
    for (std::size_t t = mask.size(); t-- > 0;) {
      const double delta = rewards[t] + 0.9 * next - padded_values[t];
      const double advantage = delta + 0.9 * 0.8 * last;
      next = padded_values[t] * mask[t] + (1 - mask[t]) * next;
      last = advantage * mask[t] + (1 - mask[t]) * last;
      if (mask[t] != 0) reversed.push_back(last);
    }
    return std::vector<double>(reversed.rbegin(), reversed.rend());
  };
  const std::vector<double> first =
      verl({0.1, 0.2, 0.3, 9, 9, 9, 0.4, 0.5}, {0, 0, 0, 0, 0, 0, 0, 2}, {1, 1, 1, 0, 0, 0, 1, 1});
  const std::vector<double> second = verl({0.6, 0.7, 0.8}, {0, 0, -1}, {1, 1, 1});
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(estimates->advantages[i], first[i], 1e-5) << i;
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(estimates->advantages[5 + i], second[i], 1e-5) << i;
}

TEST_F(ResponseMaskTest, AReferencesPenaltyIsOverTheLearnedTokens) {
  auto reference = ReferenceWorker::create({.model = folder_,
                                            .adapter = {},
                                            .threads = 1,
                                            .temperature = 1.0F,
                                            .micro_batch = {},
                                            .penalty = {.estimator = KlEstimator::kK1}});
  ASSERT_TRUE(reference.ok());
  const RolloutBatch samples = batch();
  const auto scores = (*reference)->score(samples);
  ASSERT_TRUE(scores.ok());
  ASSERT_EQ(scores->logprobs.size(), samples.logprobs.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < 5; ++i)
    sum += double{samples.logprobs[i]} - double{scores->logprobs[i]};
  EXPECT_NEAR(scores->kl_penalties[0], sum, 1e-4);
}

TEST_F(ResponseMaskTest, MasksStayWithTheirSamples) {
  RolloutBatch samples = batch();
  samples.notes = {R"({"num_turns":4})", R"({"num_turns":2})"};
  RolloutBatch plain = batch();
  plain.response_mask.clear();
  plain.logprobs.assign(plain.responses.values.size(), -1.0F);
  plain.notes = {"{}", "{}"};
  const auto both = append_prompts(plain, samples, std::vector<std::int64_t>{0});
  ASSERT_TRUE(both.ok()) << both.status().to_string();
  EXPECT_TRUE(both->validate().ok());
  EXPECT_EQ(both->learned_tokens(0), 8);
  EXPECT_EQ(both->learned_tokens(2), 5);
  EXPECT_EQ(both->notes[2], samples.notes[0]);
  const auto last = without_samples(*both, {1, 1, 0, 1});
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->response_mask, (std::vector<std::uint8_t>{1, 1, 1, 0, 0, 0, 1, 1}));
  EXPECT_EQ(last->logprobs, (std::vector<float>{-1.0F, -2.0F, -1.5F, -0.5F, -0.75F}));
}

TEST_F(ResponseMaskTest, AMaskThatDoesNotFitIsRefused) {
  RolloutBatch samples = batch();
  samples.response_mask.pop_back();
  EXPECT_FALSE(samples.validate().ok());
  samples = batch();
  samples.response_mask = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
  samples.logprobs.resize(3);
  EXPECT_FALSE(samples.validate().ok());  // nothing of the first is the policy's
}

}  // namespace
}  // namespace rl
