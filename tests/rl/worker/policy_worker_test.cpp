// Training loops without the runtime: workers are objects, ranks are threads.
#include "rl/worker/policy_worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "rl/actor/snapshot_slot.h"
#include "rl/algo/group_advantage.h"
#include "rl/batch/balance.h"
#include "rl/comm/gloo_communicator.h"
#include "rl/data/prompt_builder.h"
#include "rl/data/toy.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/worker/reference_worker.h"
#include "rl/worker/reward_worker.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSamples = 4;

class PolicyWorkerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("starling-policy-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static PolicyOptions options() {
    PolicyOptions options;
    options.model = folder_;
    options.training = {.samples = kSamples, .response_tokens_max = 6};
    options.validation = {.samples = 1, .temperature = 0.0F, .response_tokens_max = 6};
    options.micro_batch.tokens_max = 60;
    options.positions_max = 48;
    options.learner.adamw.weight_decay = 0.1F;
    return options;
  }

  static std::unique_ptr<PolicyWorker> make(
      const PolicyOptions& options,
      std::unique_ptr<Communicator> communicator = make_single_communicator()) {
    auto worker = PolicyWorker::create(options, std::move(communicator));
    EXPECT_TRUE(worker.ok()) << worker.status().to_string();
    return std::move(*worker);
  }

  // Prompts of the toy task with their tasks; prompt i's seed is i.
  static PromptBatch prompts(std::span<const std::int64_t> rows,
                             std::vector<RewardTask>* tasks = nullptr) {
    static const Tokenizer tokenizer = *Tokenizer::load(folder_);
    static const Dataset data =
        make_toy_dataset({.task = ToyTask::kCopy, .rows = 64, .letters = 4, .length = 2});
    const auto builder = PromptBuilder::create(tokenizer, {});
    PromptBatch batch;
    for (const std::int64_t row : rows) {
      const auto ids = builder->ids(data.row(row));
      EXPECT_TRUE(ids.ok()) << ids.status().to_string();
      batch.ids.append(*ids);
      batch.seeds.push_back(static_cast<std::uint64_t>(row));
      if (tasks != nullptr)
        tasks->push_back({"toy", data.row(row).ground_truth, data.row(row).where});
    }
    return batch;
  }

  static RewardWorker reward() {
    return *RewardWorker::create(*Config::load({std::nullopt, {"reward.rule=letters"}}), folder_, 1,
                                 {.threads = 1});
  }

  // A whole GRPO step of `ranks` workers over prompts 0..7, in mini-batches of 4, which are cut
  // into `leaves` where there are any. Returns their weights' checksums and summed metrics.
  struct StepResult {
    std::vector<std::uint64_t> checksums;
    std::vector<float> weights;
    std::vector<float> moments;  // the first of the optimizer's state
    Metrics metrics;
    std::vector<std::int32_t> responses;  // in prompt order within mini-batches
  };
  /// Moves prompts to the workers of their leaves; 0 leaves: they stay.
  static RowLeaves deal(std::int64_t leaves, std::vector<PromptShard>& shards,
                        std::vector<RolloutBatch>& batches) {
    RowLeaves cut{.count = leaves};
    if (leaves == 0) return cut;
    std::vector<std::vector<std::int64_t>> tokens;
    for (const PromptShard& shard : shards) {
      std::vector<std::int64_t>& of_rank = tokens.emplace_back();
      for (const std::int64_t prompt : shard.prompts) of_rank.push_back(10 + prompt % 3);
    }
    const BalancedShards dealt = deal_leaves(shards, tokens, leaves, /*evenly=*/true);
    shards = dealt.shards;
    std::vector<RolloutBatch> moved;
    for (std::size_t rank = 0; rank < batches.size(); ++rank) {
      moved.push_back(*collect_prompts(batches, dealt.places[rank]));
      std::vector<std::int64_t>& of_rank = cut.of_rows.emplace_back();
      for (const std::int64_t leaf : dealt.leaves[rank])
        of_rank.insert(of_rank.end(), kSamples, leaf);
    }
    batches = std::move(moved);
    return cut;
  }

  static StepResult step(int ranks, const PolicyOptions& options, std::int64_t leaves = 0) {
    auto shards = shard_prompts(8, 4, ranks);
    const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
    std::vector<RolloutBatch> batches(static_cast<std::size_t>(ranks));
    std::vector<std::unique_ptr<PolicyWorker>> workers(static_cast<std::size_t>(ranks));
    const auto each = [&](const std::function<void(std::size_t)>& body) {
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back(body, static_cast<std::size_t>(rank));
      for (std::thread& thread : threads) thread.join();
    };
    std::vector<std::vector<float>> advantages(static_cast<std::size_t>(ranks));
    std::vector<std::vector<std::int64_t>> lengths(static_cast<std::size_t>(ranks));
    std::vector<RolloutSummary> summaries(static_cast<std::size_t>(ranks));
    each([&](std::size_t rank) {
      auto group = make_gloo_communicator(
          rendezvous, {.rank = static_cast<int>(rank), .size = ranks, .host = "127.0.0.1"});
      ASSERT_TRUE(group.ok()) << group.status().to_string();
      workers[rank] = make(options, std::move(*group));
      auto batch = workers[rank]->generate(prompts(shards[rank].prompts), false);
      ASSERT_TRUE(batch.ok()) << batch.status().to_string();
      batches[rank] = std::move(*batch);
    });
    const RowLeaves cut = deal(leaves, shards, batches);
    each([&](std::size_t rank) {
      std::vector<RewardTask> tasks;
      (void)prompts(shards[rank].prompts, &tasks);
      const auto scores = reward().score(batches[rank], tasks);
      ASSERT_TRUE(scores.ok());
      std::vector<float> values(scores->scores.begin(), scores->scores.end());
      std::vector<std::int64_t> groups(batches[rank].prompt_of.begin(),
                                       batches[rank].prompt_of.end());
      advantages[rank] = grpo_advantages(values, groups);
      summaries[rank] = summarize(batches[rank]);
      lengths[rank] = summaries[rank].response_tokens;
    });
    auto plan = plan_mini_batches(shards, kSamples, lengths);
    add_micro_batches(plan, tokens_by_sample(summaries),
                      std::vector(lengths.size(), workers.front()->pass_limits()), cut);
    StepResult result;
    std::vector<Metrics> metrics(static_cast<std::size_t>(ranks));
    each([&](std::size_t rank) {
      const auto report =
          workers[rank]->update(batches[rank], {}, {advantages[rank], plan[rank], 1e-2});
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      metrics[rank] = *report;
      EXPECT_TRUE(workers[rank]->check_weights().ok());
    });
    for (std::size_t rank = 0; rank < metrics.size(); ++rank) {
      for (const auto& [name, value] : metrics[rank]) result.metrics[name] += value;
      result.checksums.push_back(workers[rank]->weights_checksum());
      result.responses.insert(result.responses.end(), batches[rank].responses.values.begin(),
                              batches[rank].responses.values.end());
    }
    const at::Tensor& arena = workers[0]->learner().model().parameters().arena();
    const std::span<const float> moments = workers[0]->learner().optimizer_state().front().values;
    result.moments.assign(moments.begin(), moments.end());
    result.weights.assign(arena.const_data_ptr<float>(),
                          arena.const_data_ptr<float>() + arena.numel());
    return result;
  }

  static inline fs::path folder_;
};

TEST_F(PolicyWorkerTest, LeavesGiveTheSameBitsOnAnyNumberOfWorkers) {
  for (const std::int64_t leaves : {4, 5}) {  // a mini-batch has four prompts
    const StepResult one = step(1, options(), leaves);
    for (const int ranks : {2, 3, 4}) {
      const StepResult several = step(ranks, options(), leaves);
      for (const std::uint64_t checksum : several.checksums)
        EXPECT_EQ(checksum, one.checksums.front()) << ranks << " ranks, " << leaves << " leaves";
      EXPECT_EQ(std::memcmp(several.moments.data(), one.moments.data(),
                            one.moments.size() * sizeof(float)),
                0);
    }
  }
}

TEST_F(PolicyWorkerTest, AnAdapterDropsTheSameOnAnyNumberOfWorkers) {
  PolicyOptions adapter = options();
  adapter.adapter = AdapterOptions{};
  adapter.adapter->lora.rank = 4;
  adapter.adapter->lora.dropout = 0.3;
  const StepResult one = step(1, adapter, 4);
  EXPECT_EQ(one.moments, step(2, adapter, 4).moments);
  EXPECT_EQ(one.moments, step(3, adapter, 4).moments);
}

TEST_F(PolicyWorkerTest, LogprobsOfTheEngineAreTheTrainersToTheBit) {
  const auto worker = make(options());
  const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0, 1, 2}), false);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_EQ(batch->samples(), 3 * kSamples);
  const auto logprobs = worker->logprobs(*batch);
  ASSERT_TRUE(logprobs.ok()) << logprobs.status().to_string();
  ASSERT_EQ(logprobs->size(), batch->logprobs.size());
  EXPECT_EQ(std::memcmp(logprobs->data(), batch->logprobs.data(), logprobs->size() * sizeof(float)),
            0);
}

// Angles that depend on a length go by what a sample might have reached, for the trainer and the
// reference too, though most stop earlier.
TEST_F(PolicyWorkerTest, TheBitsAreTheSameWhereAnglesDependOnTheLength) {
  const fs::path stretched = folder_ / "stretched";
  fs::create_directories(stretched);
  ASSERT_TRUE(
      make_toy_model(stretched, {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  nlohmann::json config;
  std::ifstream(stretched / "config.json") >> config;
  config["max_position_embeddings"] = 8;
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 8.0}};
  std::ofstream(stretched / "config.json") << config;
  PolicyOptions dynamic = options();
  dynamic.model = stretched;
  dynamic.training.response_tokens_max = 20;
  const auto worker = make(dynamic);
  auto batch = worker->generate(prompts(std::vector<std::int64_t>{0, 1, 2, 3}), false);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_GT(std::count(batch->stopped.begin(), batch->stopped.end(), 1), 0);
  EXPECT_EQ(*worker->logprobs(*batch), batch->logprobs);
  const auto reference = ReferenceWorker::create(
      {.model = stretched, .threads = 1, .temperature = 1.0F, .micro_batch = {}, .penalty = {}});
  ASSERT_TRUE(reference.ok()) << reference.status().to_string();
  EXPECT_EQ((*reference)->score(*batch)->logprobs, batch->logprobs);
  batch->lengths_max.clear();
  EXPECT_NE(*worker->logprobs(*batch), batch->logprobs);
}

// As with base models that were given a chat tokenizer.
TEST_F(PolicyWorkerTest, ResponsesEndAtTheTokenizersEndToo) {
  const fs::path two_ends = folder_ / "two_ends";
  fs::create_directories(two_ends);
  ASSERT_TRUE(
      make_toy_model(two_ends, {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  const Tokenizer tokenizer = *Tokenizer::load(two_ends);
  ASSERT_TRUE(tokenizer.eos_id());
  const std::int32_t of_tokenizer = *tokenizer.eos_id(), of_config = of_tokenizer == 5 ? 6 : 5;
  for (const char* file : {"config.json", "generation_config.json"}) {
    if (!fs::exists(two_ends / file)) continue;
    nlohmann::json json;
    std::ifstream(two_ends / file) >> json;
    json["eos_token_id"] = of_config;
    std::ofstream(two_ends / file) << json;
  }
  PolicyOptions options = PolicyWorkerTest::options();
  options.model = two_ends;
  options.training.samples = 16;
  options.training.response_tokens_max = 30;
  const auto worker = make(options);
  const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0, 1, 2, 3}), false);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  std::map<std::int32_t, int> ends;
  for (std::int64_t sample = 0; sample < batch->samples(); ++sample) {
    const auto response = batch->responses.row(sample);
    for (std::size_t i = 0; i < response.size(); ++i) {
      if (response[i] != of_tokenizer && response[i] != of_config) continue;
      EXPECT_EQ(i + 1, response.size()) << "sample " << sample << " goes on behind its end";
      ++ends[response[i]];
    }
  }
  EXPECT_GT(ends[of_tokenizer], 0);
  EXPECT_GT(ends[of_config], 0);
}

TEST_F(PolicyWorkerTest, SamplesDependOnThePromptAndItsSeedAlone) {
  const auto worker = make(options());
  const auto together = worker->generate(prompts(std::vector<std::int64_t>{3, 4, 5}), false);
  const auto alone = worker->generate(prompts(std::vector<std::int64_t>{5}), false);
  ASSERT_TRUE(together.ok() && alone.ok());
  for (std::int64_t s = 0; s < kSamples; ++s) {
    const auto a = together->responses.row(2 * kSamples + s);
    const auto b = alone->responses.row(s);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

TEST_F(PolicyWorkerTest, TellsOfEachResponseWhileOthersAreDrawn) {
  PolicyOptions long_ones = options();
  long_ones.training.response_tokens_max = 20;
  const auto worker = make(long_ones);
  for (int round = 0; round < 2; ++round) {  // requests have other numbers the second time
    std::vector<std::vector<std::vector<std::int32_t>>> told(3);
    int calls = 0;
    const auto batch = worker->generate(
        prompts(std::vector<std::int64_t>{3, 4, 5}), false,
        [&](std::span<const std::int32_t> prompt_of, const Ragged<std::int32_t>& responses) {
          ++calls;
          ASSERT_EQ(static_cast<std::int64_t>(prompt_of.size()), responses.rows());
          for (std::size_t i = 0; i < prompt_of.size(); ++i) {
            const auto row = responses.row(static_cast<std::int64_t>(i));
            told.at(static_cast<std::size_t>(prompt_of[i])).emplace_back(row.begin(), row.end());
          }
        });
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    EXPECT_GT(calls, 1) << "all at the end";
    std::vector<std::vector<std::vector<std::int32_t>>> generated(3);
    for (std::int64_t sample = 0; sample < batch->samples(); ++sample) {
      const auto row = batch->responses.row(sample);
      generated[static_cast<std::size_t>(batch->prompt_of[static_cast<std::size_t>(sample)])]
          .emplace_back(row.begin(), row.end());
    }
    for (std::size_t prompt = 0; prompt < 3; ++prompt) {
      std::sort(generated[prompt].begin(), generated[prompt].end());
      std::sort(told[prompt].begin(), told[prompt].end());
      EXPECT_EQ(told[prompt], generated[prompt]);
    }
  }
}

TEST_F(PolicyWorkerTest, TwoWorkersTakeTheStepOfOne) {
  const StepResult one = step(1, options());
  const StepResult two = step(2, options());
  ASSERT_EQ(two.checksums.size(), 2u);
  EXPECT_EQ(two.checksums[0], two.checksums[1]);
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < one.weights.size(); ++i) {
    difference += std::pow(one.weights[i] - two.weights[i], 2);
    size += std::pow(one.weights[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 1e-4);
  for (const auto& [name, value] : one.metrics) {
    if (name.starts_with("perf/")) continue;
    EXPECT_NEAR(value, two.metrics.at(name), 1e-3 * std::max(1.0, std::abs(value))) << name;
  }
}

TEST_F(PolicyWorkerTest, ProbingTheVarianceDoesNotChangeTheStep) {
  PolicyOptions probing = options();
  probing.probes_variance = true;
  const StepResult one = step(1, probing);
  const StepResult two = step(2, probing);
  EXPECT_EQ(one.checksums, step(1, options()).checksums);
  for (const char* name : {"variance_proxy/expected_a_squared", "variance_proxy/expected_w",
                           "variance_proxy/proxy2_total_power"}) {
    EXPECT_GT(one.metrics.at(name), 0.0) << name;
    EXPECT_NEAR(two.metrics.at(name), one.metrics.at(name), 1e-4 * one.metrics.at(name)) << name;
  }
  EXPECT_GT(one.metrics.at("perf/mfu/actor"), 0.0);
}

TEST_F(PolicyWorkerTest, TheSameRunGivesTheSameBits) {
  EXPECT_EQ(step(2, options()).checksums, step(2, options()).checksums);
}

TEST_F(PolicyWorkerTest, LayersComputedAgainGiveTheSameBits) {
  PolicyOptions recompute = options();
  recompute.recompute_layers = true;
  EXPECT_EQ(step(1, recompute).checksums, step(1, options()).checksums);
}

// The ratio of a first step is that of a policy to itself, though its responses were generated in
// fp32.
TEST_F(PolicyWorkerTest, InBf16AStepIsNearThatInFp32) {
  PolicyOptions bf16 = options();
  bf16.bf16 = true;
  const StepResult exact = step(1, options());
  const StepResult rounded = step(2, bf16);
  EXPECT_EQ(rounded.checksums[0], rounded.checksums[1]);
  EXPECT_NE(rounded.checksums[0], exact.checksums[0]);
  EXPECT_GT(rounded.metrics.at("training/rollout_probs_diff_mean"), 0.0);
  EXPECT_LT(rounded.metrics.at("training/rollout_probs_diff_mean"), 0.01);
  EXPECT_FALSE(exact.metrics.contains("training/rollout_probs_diff_mean"));
  EXPECT_NEAR(rounded.metrics.at("actor/grad_norm"), exact.metrics.at("actor/grad_norm"),
              0.05 * exact.metrics.at("actor/grad_norm"));
}

TEST_F(PolicyWorkerTest, MicroBatchesDoNotChangeTheStep) {
  PolicyOptions whole = options();
  whole.micro_batch = {};
  PolicyOptions single = options();
  single.micro_batch = {.samples_max = 1};
  const StepResult a = step(1, whole);
  const StepResult b = step(1, single);
  EXPECT_NEAR(a.metrics.at("actor/pg_loss"), b.metrics.at("actor/pg_loss"), 1e-6);
  EXPECT_NEAR(a.metrics.at("actor/grad_norm"), b.metrics.at("actor/grad_norm"),
              1e-4 * a.metrics.at("actor/grad_norm"));
}

// The gradients of both mini-batches are in SGD's momentum, whatever the step was cut into.
TEST_F(PolicyWorkerTest, TheWholeGradientDependsOnNeitherMicroBatchesNorWorkers) {
  for (const auto& [loss, mode] :
       {std::pair(PolicyLossMode::kVanilla, AggregationMode::kTokenMean),
        {PolicyLossMode::kVanilla, AggregationMode::kSeqMeanTokenSum},
        {PolicyLossMode::kVanilla, AggregationMode::kSeqMeanTokenSumNorm},
        {PolicyLossMode::kGspo, AggregationMode::kSeqMeanTokenMean},
        {PolicyLossMode::kCispo, AggregationMode::kTokenMean},
        {PolicyLossMode::kGeoMean, AggregationMode::kTokenMean},
        {PolicyLossMode::kClipCov, AggregationMode::kTokenMean},
        {PolicyLossMode::kKlCov, AggregationMode::kTokenMean}}) {
    PolicyOptions how = options();
    how.objective.covariance = {.clip_ratio = 0.1,
                                .clip_lower = 0.0,
                                .clip_upper = 5.0,
                                .kl_ratio = 0.1,
                                .kl_coefficient = 1.0};
    how.objective.mode = loss;
    how.learner.optimizer = OptimizerKind::kSgd;
    how.learner.sgd.momentum = 0.9F;
    how.learner.grad_norm_max = 0.0;
    how.objective.aggregation = mode;
    how.objective.entropy_coefficient = 0.01;
    how.micro_batch = {};
    const StepResult whole = step(1, how);
    for (const auto& [ranks, samples_max] :
         {std::pair(1, 1), std::pair(1, 5), std::pair(2, 0), std::pair(2, 3)}) {
      how.micro_batch.samples_max = samples_max;
      const StepResult cut = step(ranks, how);
      double difference = 0.0;
      double size = 0.0;
      for (std::size_t i = 0; i < whole.moments.size(); ++i) {
        difference += std::pow(double{cut.moments[i]} - double{whole.moments[i]}, 2);
        size += std::pow(double{whole.moments[i]}, 2);
      }
      EXPECT_GT(size, 0.0);
      EXPECT_LE(std::sqrt(difference / size), 1e-6)
          << to_string(mode) << ": " << ranks << " workers, " << samples_max << " samples at once";
    }
  }
}

TEST_F(PolicyWorkerTest, OnPolicyTheFirstMiniBatchHasNoKlAndNoClipping) {
  const auto worker = make(options());
  const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0, 1}), false);
  ASSERT_TRUE(batch.ok());
  const std::vector<float> advantages{1, -1, 1, -1, 0.5, 0.5, -0.5, -0.5};
  const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
  const auto metrics = worker->update(*batch, {}, {advantages, {{0, 8, tokens, 8}}, 1e-3});
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  EXPECT_EQ(metrics->at("actor/ppo_kl"), 0.0);
  EXPECT_EQ(metrics->at("actor/pg_clipfrac"), 0.0);
  EXPECT_GT(metrics->at("actor/grad_norm"), 0.0);
  EXPECT_GT(metrics->at("actor/entropy"), 0.0);
}

TEST_F(PolicyWorkerTest, KlToTheReferenceIsZeroAtTheStartAndGrows) {
  PolicyOptions with_kl = options();
  with_kl.objective.use_kl_loss = true;
  const auto worker = make(with_kl);
  const auto reference = ReferenceWorker::create(
      {.model = folder_, .threads = 1, .temperature = 1.0F, .micro_batch = {}, .penalty = {}});
  ASSERT_TRUE(reference.ok()) << reference.status().to_string();
  for (int round = 0; round < 2; ++round) {
    const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0, 1}), false);
    ASSERT_TRUE(batch.ok());
    const auto scores = (*reference)->score(*batch);
    ASSERT_TRUE(scores.ok());
    ASSERT_EQ(scores->kl_penalties.size(), 8u);
    const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
    const UpdatePlan plan{{1, -1, 1, -1, 1, -1, 1, -1}, {{0, 8, tokens, 8}}, 1e-2};
    const auto metrics = worker->update(*batch, scores->logprobs, plan);
    ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
    if (round == 0) {
      EXPECT_EQ(metrics->at("actor/kl_loss"), 0.0);
    } else {
      EXPECT_GT(metrics->at("actor/kl_loss"), 0.0);
    }
    EXPECT_FALSE(worker->update(*batch, {}, plan).ok());  // the reference's log-probs are missing
  }
}

TEST_F(PolicyWorkerTest, SavedAndLoadedItContinuesWithTheSameBits) {
  const auto train = [&](PolicyWorker& worker, std::int64_t row) {
    const auto batch = worker.generate(prompts(std::vector<std::int64_t>{row}), false);
    const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
    ASSERT_TRUE(worker.update(*batch, {}, {{1, -1, 1, -1}, {{0, 4, tokens, 4}}, 1e-2}).ok());
  };
  const auto through = make(options());
  train(*through, 0);
  const fs::path folder = folder_ / "checkpoint";
  fs::create_directories(folder);
  const auto files = through->save(folder);
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  EXPECT_GE(files->size(), 4u);
  for (const fs::path& file : *files) EXPECT_TRUE(fs::exists(folder / file)) << file;
  EXPECT_TRUE(fs::exists(folder / kModelFolder / "tokenizer.json"));
  train(*through, 1);

  const auto resumed = make(options());
  const auto loaded = resumed->load(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.to_string();
  train(*resumed, 1);
  EXPECT_EQ(through->weights_checksum(), resumed->weights_checksum());
}

// The second copy is taken in the memory of the first, while the worker has learned more. What is
// written is of when it was taken.
TEST_F(PolicyWorkerTest, WhatIsWrittenIsWhatWasTaken) {
  const auto worker = make(options());
  const auto train = [&](std::int64_t row) {
    const auto batch = worker->generate(prompts(std::vector<std::int64_t>{row}), false);
    const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
    ASSERT_TRUE(worker->update(*batch, {}, {{1, -1, 1, -1}, {{0, 4, tokens, 4}}, 1e-2}).ok());
  };
  SnapshotSlot slot;
  EXPECT_EQ(slot.write(*worker, folder_ / "nothing").status().code(),
            runtime::ErrorCode::kInternal);
  for (const std::int64_t round : {0, 1, 2}) {
    train(2 * round);
    const std::uint64_t taken = worker->weights_checksum();
    slot.take(*worker);
    train(2 * round + 1);
    const std::uint64_t later = worker->weights_checksum();
    const fs::path folder = folder_ / ("taken" + std::to_string(round));
    const auto files = slot.write(*worker, folder);
    ASSERT_TRUE(files.ok()) << files.status().to_string();
    EXPECT_EQ(slot.write(*worker, folder).status().code(), runtime::ErrorCode::kInternal)
        << "it was written";
    const auto again = make(options());
    ASSERT_TRUE(again->load(folder).ok());
    EXPECT_EQ(again->weights_checksum(), taken);
    const auto batch = again->generate(prompts(std::vector<std::int64_t>{2 * round + 1}), false);
    ASSERT_TRUE(
        again
            ->update(*batch, {},
                     {{1, -1, 1, -1},
                      {{0, 4, static_cast<std::int64_t>(batch->responses.values.size()), 4}},
                      1e-2})
            .ok());
    EXPECT_EQ(again->weights_checksum(), later) << "its optimizer's state is of then, too";
  }
}

TEST_F(PolicyWorkerTest, ANonFiniteGradientIsSkipped) {
  const auto worker = make(options());
  const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0}), false);
  const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
  const std::uint64_t before = worker->weights_checksum();
  const auto metrics =
      worker->update(*batch, {}, {{std::nanf(""), 1, 1, 1}, {{0, 4, tokens, 4}}, 1e-2});
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->at("actor/skipped_updates"), 1.0);
  EXPECT_EQ(worker->weights_checksum(), before);
}

TEST_F(PolicyWorkerTest, RefusesPlansThatDoNotFit) {
  const auto worker = make(options());
  const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0}), false);
  EXPECT_EQ(worker->update(*batch, {}, {{1, 1}, {{0, 2, 4, 2}}, 1e-2}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(worker->update(*batch, {}, {{1, 1, 1, 1}, {{0, 5, 4, 5}}, 1e-2}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  PromptBatch unseeded = prompts(std::vector<std::int64_t>{0});
  unseeded.seeds.clear();
  EXPECT_EQ(worker->generate(unseeded, false).status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

// The value head's gradient reaches the backbone in the policy's own step. With no advantage to
// follow, the weights below the head move all the same.
TEST_F(PolicyWorkerTest, ACriticOnTheBackboneLearnsInThePolicysPasses) {
  PolicyOptions shared = options();
  shared.critic = SharedCriticOptions{};
  shared.critic->loss_coefficient = 1.0;
  shared.learner.adamw.weight_decay = 0.0F;
  const auto worker = make(shared);
  const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0, 1}), false);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  const std::vector<double> scores{1, 0, 1, 0, 1, 0, 1, 0};
  const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
  const auto embedding = [&] {
    return worker->learner().model().parameters().view("model.embed_tokens.weight").clone();
  };
  const auto logprobs_before = worker->logprobs(*batch);
  const at::Tensor before = embedding();
  double first = 0.0;
  double last = 0.0;
  for (int round = 0; round < 25; ++round) {
    auto estimates = worker->estimate(*batch, {}, {scores});
    ASSERT_TRUE(estimates.ok()) << estimates.status().to_string();
    const EstimateSummary summary = summarize(*estimates, *batch);
    ASSERT_EQ(summary.advantages_of_samples.size(), static_cast<std::size_t>(batch->samples()));
    Moments of_samples;
    for (const Moments& of_sample : summary.advantages_of_samples) of_samples.add(of_sample);
    EXPECT_EQ(of_samples.count, summary.advantages.count);
    EXPECT_NEAR(of_samples.sum, summary.advantages.sum, 1e-9);
    EXPECT_EQ(summary.values.count, static_cast<double>(tokens));
    std::fill(estimates->advantages.begin(), estimates->advantages.end(), 0.0F);
    const auto metrics =
        worker->update(*batch, {}, {{}, {{0, 8, tokens, 8}}, 3e-3, {}, false}, *estimates);
    ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
    EXPECT_EQ(metrics->at("actor/pg_loss"), 0.0);
    if (round == 0) {
      first = metrics->at("critic/vf_loss");
      EXPECT_FALSE(embedding().equal(before));
    }
    last = metrics->at("critic/vf_loss");
  }
  EXPECT_LT(last, 0.5 * first);
  EXPECT_NE(*worker->logprobs(*batch), *logprobs_before);

  EXPECT_FALSE(worker->update(*batch, {}, {{1, 1, 1, 1, 1, 1, 1, 1}, {{0, 8, tokens, 8}}, 1e-2})
                   .ok());  // a critic's estimates are missing
  EXPECT_FALSE(make(options())->estimate(*batch, {}, {scores}).ok());
}

// What a critic warms up with is its own loss alone.
TEST_F(PolicyWorkerTest, WhileTheCriticWarmsUpThePolicyHasNoLoss) {
  PolicyOptions shared = options();
  shared.critic = SharedCriticOptions{};
  const auto worker = make(shared);
  const auto batch = worker->generate(prompts(std::vector<std::int64_t>{0}), false);
  const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
  const auto estimates = worker->estimate(*batch, {}, {std::vector<double>{1, 0, 1, 0}});
  ASSERT_TRUE(estimates.ok());
  const auto metrics =
      worker->update(*batch, {}, {{}, {{0, 4, tokens, 4}}, 1e-3, {}, true}, *estimates);
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  EXPECT_FALSE(metrics->contains("actor/pg_loss"));
  EXPECT_GT(metrics->at("critic/vf_loss"), 0.0);
}

TEST_F(PolicyWorkerTest, AnAdapterIsTrainedInPlaceOfTheWeights) {
  PolicyOptions adapted = options();
  adapted.adapter = AdapterOptions{.lora = {.rank = 4, .alpha = 8.0}, .folder = {}, .seed = 3};
  const auto train = [&](PolicyWorker& worker, std::int64_t row) {
    const auto batch = worker.generate(prompts(std::vector<std::int64_t>{row}), false);
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    const auto logprobs = worker.logprobs(*batch);  // through the adapter on both sides
    ASSERT_TRUE(logprobs.ok());
    EXPECT_EQ(
        std::memcmp(logprobs->data(), batch->logprobs.data(), logprobs->size() * sizeof(float)), 0);
    const auto tokens = static_cast<std::int64_t>(batch->responses.values.size());
    ASSERT_TRUE(worker.update(*batch, {}, {{1, -1, 1, -1}, {{0, 4, tokens, 4}}, 1e-2}).ok());
  };
  const auto through = make(adapted);
  const at::Tensor base = through->learner().model().parameters().arena().clone();
  const std::uint64_t untrained = through->weights_checksum();
  const auto batch = through->generate(prompts(std::vector<std::int64_t>{0}), false);
  const std::vector<float> at_first = *through->logprobs(*batch);
  EXPECT_EQ(at_first, *make(options())->logprobs(*batch));  // a new adapter changes nothing
  train(*through, 0);
  EXPECT_NE(through->weights_checksum(), untrained);
  EXPECT_TRUE(through->learner().model().parameters().arena().equal(base));
  EXPECT_NE(*through->logprobs(*batch), at_first);

  const fs::path folder = folder_ / "adapted";
  fs::create_directories(folder);
  const auto files = through->save(folder);
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  for (const fs::path& file : *files) EXPECT_TRUE(fs::exists(folder / file)) << file;
  EXPECT_FALSE(fs::exists(folder / kModelFolder));
  train(*through, 1);
  const auto resumed = make(adapted);
  const auto loaded = resumed->load(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.to_string();
  train(*resumed, 1);
  EXPECT_EQ(through->weights_checksum(), resumed->weights_checksum());

  adapted.adapter->lora.rank = 2;
  EXPECT_EQ(make(adapted)->load(folder).code(), runtime::ErrorCode::kInvalidArgument);
}

TEST_F(PolicyWorkerTest, SupervisedStepsLearnTheDemonstrations) {
  const auto worker = make(options());
  DemonstrationBatch batch;
  batch.prompts = prompts(std::vector<std::int64_t>{0, 1, 2, 3}).ids;
  for (std::int64_t i = 0; i < 4; ++i) batch.responses.append(batch.prompts.row(i).subspan(2, 3));
  double first = 0;
  double last = 0;
  for (int i = 0; i < 30; ++i) {
    const auto metrics = worker->supervise(batch, {12, 1e-2});
    ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
    if (i == 0) first = metrics->at("sft/loss");
    last = metrics->at("sft/loss");
  }
  EXPECT_LT(last, 0.5 * first);
}

}  // namespace
}  // namespace rl
