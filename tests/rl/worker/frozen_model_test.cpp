// Frozen models that ranks keep once: the numbers of whole weights, and what memory there is at a
// time. Ranks are threads.
#include "rl/worker/frozen_model.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/data/toy.h"
#include "rl/model/arena_units.h"
#include "rl/worker/passes.h"
#include "rl/worker/reference_worker.h"
#include "rl/worker/toy_model.h"
#include "tests/rl/model/fixtures.h"
#include "tests/rl/model/large_config.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr std::int64_t kPage = 1024;  // elements

// The rows of a rank: as many as its number, so that the first one only makes idle passes.
std::vector<std::vector<std::int32_t>> rows_of(int rank, const ModelConfig& model) {
  std::vector<std::vector<std::int32_t>> rows;
  for (int row = 0; row < rank; ++row) {
    std::vector<std::int32_t>& tokens = rows.emplace_back();
    for (int i = 0; i < 5 + row; ++i)
      tokens.push_back((7 * rank + 3 * row + 2 * i) % static_cast<std::int32_t>(model.vocab_size));
  }
  return rows;
}

// A pass for each row, and idle ones.
Result<std::vector<float>> logprobs_of(const FrozenModel& model,
                                       const std::vector<std::vector<std::int32_t>>& rows,
                                       const PassOptions& how = {}) {
  std::vector<MicroBatch> own;
  for (std::int64_t row = 0; row < std::ssize(rows); ++row) own.push_back({row, row + 1});
  const Result<std::vector<MicroBatch>> passes = model.in_step(std::move(own));
  if (!passes.ok()) return passes.status();
  const PassInput input{.pack =
                            [&](const MicroBatch& batch) {
                              PackedBatch packed;
                              packed.append(rows[static_cast<std::size_t>(batch.first)]);
                              return packed;
                            },
                        .wanted = {.logprobs = LogprobOptions()}};
  std::vector<float> logprobs;
  const Status scored =
      Passes(model.transformer(), how)
          .score(*passes, input,
                 [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&) -> Status {
                   const at::Tensor values = outputs.logprobs.logprobs_N.contiguous();
                   const float* data = values.const_data_ptr<float>();
                   logprobs.insert(logprobs.end(), data, data + values.numel());
                   return {};
                 });
  if (!scored.ok()) return scored;
  return logprobs;
}

void on_ranks(int size, const std::function<void(Communicator&)>& body) {
  auto links = make_thread_links(size);
  std::vector<std::thread> threads;
  for (auto& link : links) {
    threads.emplace_back([&body, link = std::move(link)]() mutable {
      Communicator communicator(std::move(link));
      body(communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::unique_ptr<FrozenModel> load(const fs::path& folder, const FrozenRanks& ranks) {
  auto model = FrozenModel::load(folder, {.threads = 1}, ranks);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model.ok() ? std::move(*model) : nullptr;
}

// By rank, of whole weights.
std::vector<std::vector<float>> expected_of(const fs::path& folder, int size,
                                            const PassOptions& how = {}) {
  const auto whole = load(folder, {});
  std::vector<std::vector<float>> expected;
  for (int rank = 0; whole != nullptr && rank < size; ++rank) {
    const auto logprobs = logprobs_of(*whole, rows_of(rank, whole->config()), how);
    EXPECT_TRUE(logprobs.ok()) << logprobs.status().to_string();
    expected.push_back(logprobs.value_or({}));
  }
  expected.resize(static_cast<std::size_t>(size));
  return expected;
}

// Two neighbouring units, on whole pages.
std::int64_t two_units(const ModelConfig& config) {
  std::int64_t before = 0, most = 0;
  for (const ArenaUnit& unit : arena_units(config, parameter_layout(config))) {
    const std::int64_t read = unit.read.elements() + 2 * kPage * std::ssize(unit.read.ranges());
    most = std::max(most, before + read);
    before = read;
  }
  return most;
}

TEST(FrozenModel, HasTheBitsOfWholeWeightsInEveryFamily) {
  const auto cases = testing::model_cases();
  ASSERT_GT(cases.size(), 5u);
  for (const fs::path& folder : cases) {
    SCOPED_TRACE(folder.filename().string());
    const auto expected = expected_of(folder, 3);
    on_ranks(3, [&](Communicator& ranks) {
      const auto model = load(folder, {.all = &ranks});
      ASSERT_NE(model, nullptr);
      EXPECT_TRUE(model->is_shared());
      const auto rows = rows_of(ranks.rank(), model->config());
      const auto shared = logprobs_of(*model, rows);
      ASSERT_TRUE(shared.ok()) << shared.status().to_string();
      EXPECT_EQ(shared->empty(), ranks.rank() == 0);
      EXPECT_EQ(*shared, expected[static_cast<std::size_t>(ranks.rank())]);
      const std::int64_t most = model->most_weights_there();
      EXPECT_GT(most, 0);
      EXPECT_LE(most, two_units(model->config()));
      EXPECT_EQ(logprobs_of(*model, rows).value_or({}), *shared) << "once more";
    });
  }
}

TEST(FrozenModel, ARankHasTwoUnitsAtATime) {
  const ModelConfig large = testing::large_config(/*layers=*/4);
  on_ranks(4, [&](Communicator& ranks) {
    const FrozenRanks all{.all = &ranks};
    FrozenModel model(std::make_unique<Transformer>(large, Parameters::random(large, 1),
                                                    TransformerOptions{.threads = 1}),
                      all);
    ASSERT_TRUE(logprobs_of(model, rows_of(ranks.rank(), model.config())).ok());
    const std::int64_t most = model.most_weights_there();
    EXPECT_LE(most, two_units(model.config()));
    EXPECT_LT(2 * most, model.transformer().parameters().arena_size());
  });
}

// Each pair of four has all weights, and reads no others' part.
TEST(FrozenModel, GroupsKeepTheWeightsOnceEach) {
  const fs::path folder = testing::model_folder("qwen2");
  const auto expected = expected_of(folder, 4);
  on_ranks(4, [&](Communicator& ranks) {
    const auto model = load(folder, {.all = &ranks, .shard_ranks = 2});
    ASSERT_NE(model, nullptr);
    const auto rows = rows_of(ranks.rank(), model->config());
    EXPECT_EQ(logprobs_of(*model, rows).value_or({}),
              expected[static_cast<std::size_t>(ranks.rank())]);
    const auto alone = load(folder, {.all = &ranks, .shard_ranks = 1});
    ASSERT_NE(alone, nullptr);
    EXPECT_FALSE(alone->is_shared()) << "a group of one has all";
    EXPECT_EQ(alone->most_weights_there(), -1);
  });
}

TEST(FrozenModel, RoundedProductsHaveTheSameBits) {
  const fs::path folder = testing::model_folder("qwen2");
  const auto expected = expected_of(folder, 2, {.bf16 = true});
  on_ranks(2, [&](Communicator& ranks) {
    const auto model = load(folder, {.all = &ranks});
    ASSERT_NE(model, nullptr);
    const auto rows = rows_of(ranks.rank(), model->config());
    EXPECT_EQ(logprobs_of(*model, rows, {.bf16 = true}).value_or({}),
              expected[static_cast<std::size_t>(ranks.rank())]);
  });
}

// What a watch is told: where a rank computes, and where it waits.
TEST(FrozenModel, PassesAreSignsOfProgress) {
  const fs::path folder = testing::model_folder("qwen2");
  on_ranks(2, [&](Communicator& ranks) {
    const auto model = load(folder, {.all = &ranks});
    ASSERT_NE(model, nullptr);
    const Pulse before = ranks.pulse();
    ASSERT_TRUE(logprobs_of(*model, rows_of(2, model->config())).ok());
    const Pulse after = ranks.pulse();
    EXPECT_GT(after.operations, before.operations);
    EXPECT_GT(after.steps - before.steps, after.operations - before.operations) << "layers, too";
    EXPECT_FALSE(after.waiting);
  });
}

// Its passes fail on both sides; none waits for ever.
TEST(FrozenModel, ARankThatIsGoneEndsThePassesOfTheOthers) {
  const fs::path folder = testing::model_folder("qwen2");
  on_ranks(2, [&](Communicator& ranks) {
    const auto model = load(folder, {.all = &ranks});
    ASSERT_NE(model, nullptr);
    if (ranks.rank() == 1) return;
    const auto failed = logprobs_of(*model, rows_of(2, model->config()));
    EXPECT_EQ(failed.status().code(), runtime::ErrorCode::kUnavailable)
        << failed.status().to_string();
  });
}

RolloutBatch samples_of(int rank) {
  RolloutBatch batch;
  for (std::int32_t i = 0; i < 2 * rank; ++i) {
    batch.prompts.append(std::vector<std::int32_t>{1, 2 + i});
    const std::vector<std::int32_t> response{3, 4, 5 + i};
    batch.responses.append(response);
    batch.prompt_of.push_back(i);
    batch.stopped.push_back(1);
    for (int token = 0; token < 3; ++token) batch.logprobs.push_back(-1.0F);
  }
  return batch;
}

std::vector<MicroBatch> passes_of(int rank) { return {{0, rank}, {rank, 2 * rank}}; }

// A worker without samples takes part; an adapter stands on weights that no rank has whole.
TEST(FrozenModel, AReferenceScoresTheSame) {
  support::TemporaryFolder folder;
  ASSERT_TRUE(make_toy_model(folder.path(), {.layers = 2, .hidden_size = 64}).ok());
  const auto config = ModelConfig::load(folder.path());
  ASSERT_TRUE(config.ok());
  auto adapter = LoraAdapter::create(*config, {.rank = 2}, 5);
  ASSERT_TRUE(adapter.ok());
  adapter->parameters().arena().add_(0.01);  // else it changes nothing
  ASSERT_TRUE(adapter->save(folder.file("adapter")).ok());
  for (const fs::path& put : {fs::path(), fs::path(folder.file("adapter"))}) {
    const ReferenceOptions options{.model = folder.path(), .adapter = put};
    const auto whole = ReferenceWorker::create(options);
    ASSERT_TRUE(whole.ok()) << whole.status().to_string();
    EXPECT_EQ((*whole)->pulse(), Pulse());
    std::vector<ReferenceScores> expected;
    for (int rank = 0; rank < 3; ++rank) {
      const auto scores = (*whole)->score(samples_of(rank), passes_of(rank));
      ASSERT_TRUE(scores.ok()) << scores.status().to_string();
      expected.push_back(*scores);
    }
    auto links = make_thread_links(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        const auto once = ReferenceWorker::create(
            options,
            std::make_unique<Communicator>(std::move(links[static_cast<std::size_t>(rank)])));
        ASSERT_TRUE(once.ok()) << once.status().to_string();
        const auto scores = (*once)->score(samples_of(rank), passes_of(rank));
        ASSERT_TRUE(scores.ok()) << scores.status().to_string();
        const ReferenceScores& of_whole = expected[static_cast<std::size_t>(rank)];
        EXPECT_EQ(scores->logprobs, of_whole.logprobs);
        EXPECT_EQ(scores->kl_penalties, of_whole.kl_penalties);
        EXPECT_GT((*once)->pulse().operations, 0u);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace rl
