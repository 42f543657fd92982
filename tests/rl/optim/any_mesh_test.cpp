// Training of every family on drawn numbers of ranks, leaves and levels of ZeRO: the bits of one
// rank. Ranks are threads.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/optim/learner.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 3;

struct Training {
  fs::path model;
  std::uint64_t seed = 0;  // of the data
  int leaves = 1;
  bool adapter = false;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
};

struct Mesh {
  int ranks = 1;
  ZeroLevel zero = ZeroLevel::kNone;
};

struct Outcome {
  std::vector<std::vector<float>> trained;  // by rank
  std::vector<double> norms;
};

// Short sequences; now and then there are none.
PackedBatch leaf_of(const Training& run, int step, int leaf, std::int64_t vocabulary) {
  std::seed_seq seeds{run.seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(leaf)};
  std::mt19937 random(seeds);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  PackedBatch batch;
  const int sequences = leaf > 0 && draw(0, 9) == 0 ? 0 : draw(1, 3);
  for (int i = 0; i < sequences; ++i) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(draw(2, 9)));
    for (std::int32_t& token : tokens) token = draw(0, static_cast<int>(vocabulary) - 1);
    batch.append(tokens);
  }
  return batch;
}

std::unique_ptr<Transformer> load(const Training& run) {
  auto config = ModelConfig::load(run.model);
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  auto model = Transformer::load(*config, run.model, 1, {.threads = 1});
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!run.adapter) return std::move(*model);
  auto adapter = LoraAdapter::create(*config, {.rank = 2, .dropout = 0.25}, 7);
  EXPECT_TRUE(adapter.ok()) << adapter.status().to_string();
  EXPECT_TRUE((*model)->add_adapter("trained", std::move(*adapter)).ok());
  EXPECT_TRUE((*model)->use_adapter("trained").ok());
  (*model)->dropout_passes().seed(run.seed);
  return std::move(*model);
}

void learn(Learner& learner, const PackedBatch& batch) {
  if (batch.sequences() == 0) return;
  const auto logprobs = learner.model().token_logprobs(batch);
  ASSERT_TRUE(logprobs.ok()) << logprobs.status().to_string();
  (logprobs->logprobs_N.sum() * -0.01).backward();
}

Outcome train(const Training& run, const Mesh& mesh) {
  Outcome outcome;
  outcome.trained.resize(static_cast<std::size_t>(mesh.ranks));
  auto links = make_thread_links(mesh.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < mesh.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      LearnerOptions options;
      options.optimizer = run.optimizer;
      options.sgd.momentum = 0.9F;
      options.zero = mesh.zero;
      Learner learner(load(run), std::make_unique<Communicator>(std::move(links[at])), options);
      const std::int64_t vocabulary = learner.model().config().vocab_size;
      for (int step = 0; step < kSteps; ++step) {
        for (int first = 0; first < run.leaves; first += mesh.ranks) {
          std::vector<std::uint8_t> adds;
          for (int leaf = first; leaf < first + mesh.ranks; ++leaf)
            adds.push_back(
                leaf < run.leaves && leaf_of(run, step, leaf, vocabulary).sequences() > 0 ? 1 : 0);
          learner.begin_leaf(first + rank);
          if (first + rank < run.leaves)
            learn(learner, leaf_of(run, step, first + rank, vocabulary));
          const runtime::Status added = learner.add_round(adds, first + mesh.ranks >= run.leaves);
          ASSERT_TRUE(added.ok()) << added.to_string();
        }
        const auto report = learner.apply(1e-2);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        if (rank == 0) outcome.norms.push_back(report->grad_norm);
      }
      const at::Tensor& arena = learner.model().trained_parameters().arena();
      outcome.trained[at].assign(arena.const_data_ptr<float>(),
                                 arena.const_data_ptr<float>() + arena.numel());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

void expect_same_bits(const fs::path& folder, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Training run{.model = folder, .seed = seed, .leaves = draw(3, 8)};
  run.adapter = draw(0, 2) == 0;
  run.optimizer = draw(0, 2) == 0 ? OptimizerKind::kSgd : OptimizerKind::kAdamW;
  SCOPED_TRACE(folder.filename().string() + ", seed " + std::to_string(seed) + ", " +
               std::to_string(run.leaves) + " leaves" + (run.adapter ? ", an adapter" : ""));
  const Outcome one = train(run, {});
  ASSERT_EQ(one.norms.size(), static_cast<std::size_t>(kSteps));
  EXPECT_GT(one.norms.front(), 0.0);
  const Mesh several{.ranks = draw(2, 8),
                     .zero = draw(0, 1) == 0 ? ZeroLevel::kNone : ZeroLevel::kMoments};
  const Outcome all = train(run, several);
  EXPECT_EQ(all.norms, one.norms) << several.ranks << " ranks";
  for (const std::vector<float>& trained : all.trained)
    EXPECT_TRUE(trained == one.trained[0]) << several.ranks << " ranks";
}

TEST(AnyMesh, TrainsEveryFamilyToTheSameBits) {
  std::uint64_t seed = 0;
  int families = 0;
  for (const fs::path& folder : testing::model_cases()) {
    ++families;
    for (int time = 0; time < 3; ++time) expect_same_bits(folder, ++seed);
  }
  EXPECT_GT(families, 20);
}

}  // namespace
}  // namespace rl
