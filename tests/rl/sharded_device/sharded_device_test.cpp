// Ranks on a device that keep gradients, or weights too, once: what they learn, and what of them is
// on the device.
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/model/arena_units.h"
#include "rl/model/device.h"
#include "rl/model/tensor_span.h"
#include "rl/plan/memory_plan.h"
#include "rl/worker/frozen_model.h"
#include "rl/worker/passes.h"
#include "rl/worker/sft_worker.h"
#include "rl/worker/toy_model.h"
#include "tests/rl/device/stand_in.h"
#include "tests/rl/sharded_device/rank_processes.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

constexpr int kShardingRanks = 3;
constexpr int kShardedSteps = 3;
constexpr std::int64_t kRowsPerRank = 3;

class ShardedDevice : public testing::DeviceTest {
 protected:
  using Weights = std::vector<float>;
  using OnRank = std::function<void(SftWorker&, int rank)>;

  ShardedDevice() {
    EXPECT_TRUE(
        make_toy_model(model(), {.layers = 3, .hidden_size = 64, .intermediate_size = 128}).ok());
  }

  void SetUp() override {
    if (!testing::on_stand_in())
      GTEST_SKIP() << "CUDA does not go on in a forked process: check_on_gpu.sh has such runs";
  }

  std::filesystem::path model() const { return folder_.file("model"); }

  SftWorkerOptions options(ZeroLevel zero) const {
    SftWorkerOptions options;
    options.model = model();
    options.device = testing::tested_device();
    options.learner.zero = zero;
    return options;
  }

  static SupervisedBatch rows_of(int rank) {
    SupervisedBatch made;
    for (std::int64_t row = rank * kRowsPerRank; row < (rank + 1) * kRowsPerRank; ++row) {
      LearnedTokens tokens;
      for (std::int64_t i = 0; i < 6 + row % 4; ++i) {
        tokens.ids.push_back(static_cast<std::int32_t>(4 + (row * 7 + i * i) % 26));
        tokens.learned.push_back(i > 1 ? 1 : 0);
      }
      made.append(tokens);
    }
    return made;
  }

  // Two passes of each rank.
  static void learn(SftWorker& worker, int rank, int steps = kShardedSteps) {
    std::int64_t tokens = 0;
    std::vector<std::vector<std::int64_t>> lengths;
    for (int other = 0; other < kShardingRanks; ++other) {
      const SupervisedBatch batch = rows_of(other);
      tokens += batch.learned_tokens();
      lengths.push_back(sequence_lengths(batch));
    }
    const auto passes =
        plan_rounds(lengths, std::vector<MicroBatchLimits>(kShardingRanks, {.samples_max = 2}));
    for (int step = 0; step < steps; ++step) {
      const auto report =
          worker.update(rows_of(rank), {tokens, 1e-2, passes[static_cast<std::size_t>(rank)]});
      ASSERT_TRUE(report.ok()) << report.status().to_string();
    }
  }

  void on_ranks(const SftWorkerOptions& options, const OnRank& body) const {
    static int meetings = 0;
    testing::in_rank_processes(kShardingRanks, folder_.file("meeting" + std::to_string(meetings++)),
                               [&](std::unique_ptr<Communicator> communicator, int rank) {
                                 auto worker = SftWorker::create(options, std::move(communicator));
                                 ASSERT_TRUE(worker.ok()) << worker.status().to_string();
                                 body(**worker, rank);
                               });
  }

  static Weights weights_of(SftWorker& worker) {
    auto& learner = const_cast<Learner&>(worker.learner());
    const auto whole = learner.gathered();
    EXPECT_TRUE(whole.ok()) << whole.status().to_string();
    const at::Tensor there = learner.model().trained_parameters().arena().to(at::kCPU);
    const auto values = elements_of(there);
    return {values.begin(), values.end()};
  }

  // The same on all ranks.
  Weights trained(const SftWorkerOptions& options) const {
    const std::string file = folder_.file("weights");
    on_ranks(options, [&](SftWorker& worker, int rank) {
      learn(worker, rank);
      const Weights weights = weights_of(worker);
      std::ofstream(file + std::to_string(rank), std::ios::binary)
          .write(reinterpret_cast<const char*>(weights.data()),
                 static_cast<std::streamsize>(weights.size() * sizeof(float)));
    });
    const auto read = [&](int rank) {
      std::ifstream stored(file + std::to_string(rank), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(stored), {}};
      Weights weights(bytes.size() / sizeof(float));
      std::memcpy(weights.data(), bytes.data(), weights.size() * sizeof(float));
      return weights;
    };
    EXPECT_EQ(read(0), read(1));
    EXPECT_EQ(read(0), read(2));
    return read(0);
  }

  support::TemporaryFolder folder_;
};

TEST_F(ShardedDevice, AllLevelsLearnTheSameBits) {
  const Weights whole = trained(options(ZeroLevel::kNone));
  ASSERT_FALSE(whole.empty());
  for (const ZeroLevel level : {ZeroLevel::kGradients, ZeroLevel::kWeights}) {
    SCOPED_TRACE(static_cast<int>(level));
    EXPECT_EQ(trained(options(level)), whole);
  }
  SftWorkerOptions stays = options(ZeroLevel::kWeights);
  stays.learner.reshard_after_forward = false;
  EXPECT_EQ(trained(stays), whole);
  SftWorkerOptions recomputed = options(ZeroLevel::kWeights);
  recomputed.recompute_layers = true;
  EXPECT_EQ(trained(recomputed), whole);
  SftWorkerOptions groups = options(ZeroLevel::kWeights);
  groups.learner.shard_ranks = 1;
  EXPECT_EQ(trained(groups), whole);
  // Nothing is left to leave the device.
  SftWorkerOptions offloaded = options(ZeroLevel::kWeights);
  offloaded.learner.offload = {.parameters = true, .gradients = true};
  EXPECT_EQ(trained(offloaded), whole);
}

TEST_F(ShardedDevice, SoDoAdapters) {
  SftWorkerOptions adapted = options(ZeroLevel::kNone);
  adapted.adapter = AdapterOptions{.lora = {.rank = 2}, .folder = {}};
  const Weights whole = trained(adapted);
  for (const ZeroLevel level : {ZeroLevel::kGradients, ZeroLevel::kWeights}) {
    SCOPED_TRACE(static_cast<int>(level));
    adapted.learner.zero = level;
    EXPECT_EQ(trained(adapted), whole);
  }
}

TEST_F(ShardedDevice, InAPassTwoUnitsOfTheWeightsAreThere) {
  on_ranks(options(ZeroLevel::kWeights), [](SftWorker& worker, int rank) {
    auto& learner = const_cast<Learner&>(worker.learner());
    const Parameters& parameters = learner.model().parameters();
    std::int64_t two = 0, before = 0;
    for (const ArenaUnit& unit : arena_units(learner.model().config(), parameters.specs())) {
      two = std::max(two, before + unit.read.elements());
      before = unit.read.elements();
    }
    (void)learner.most_weights_there();
    learn(worker, rank, 1);
    const std::int64_t most = learner.most_weights_there();
    EXPECT_GT(most, 0);
    const std::int64_t page = (16 << 10) / sizeof(float);
    EXPECT_LE(most, two + 4 * page);
    EXPECT_LT(most, parameters.arena_size());
  });
}

// Of a model whose weights are most of what is there, with few pages on the borders of units.
TEST_F(ShardedDevice, PeaksAreWhatIsPlanned) {
  const std::filesystem::path large = folder_.file("large");
  ASSERT_TRUE(
      make_toy_model(large, {.layers = 4, .hidden_size = 256, .intermediate_size = 1024}).ok());
  for (const ZeroLevel level :
       {ZeroLevel::kNone, ZeroLevel::kMoments, ZeroLevel::kGradients, ZeroLevel::kWeights}) {
    SftWorkerOptions of_level = options(level);
    of_level.model = large;
    on_ranks(of_level, [&](SftWorker& worker, int rank) {
      learn(worker, rank, 1);
      const Transformer& there = worker.learner().model();
      const auto tokens =
          static_cast<std::int64_t>(2 * rows_of(rank).ids.values.size() / kRowsPerRank);
      const RoleMemory role{"worker", kShardingRanks,
                            training_memory(there.config(), {.forward_tokens = tokens,
                                                             .output_tokens = tokens,
                                                             .positions = 16,
                                                             .workers = kShardingRanks,
                                                             .zero = level,
                                                             .on_device = true})};
      const DeviceMemory planned = device_memory(role, /*context=*/0);
      const double said = static_cast<double>(planned.always + planned.at_work);
      const auto peak = peak_device_bytes(there.parameters().arena().device());
      ASSERT_TRUE(peak);
      const double over = static_cast<double>(*peak) / said - 1.0;
      RecordProperty("over", std::to_string(over));
      if (rank == 0)
        std::printf("level %d: %.1f MB, %.1f said, %+.1f %%\n", static_cast<int>(level),
                    static_cast<double>(*peak) / 1e6, said / 1e6, 100 * over);
      EXPECT_LT(std::abs(over), 0.1) << "level " << static_cast<int>(level);
    });
  }
}

TEST_F(ShardedDevice, WhatRanksSaveOneRankOnTheCpuReads) {
  const Weights expected = trained(options(ZeroLevel::kNone));
  const std::filesystem::path saved = folder_.file("saved");
  on_ranks(options(ZeroLevel::kWeights), [&](SftWorker& worker, int rank) {
    learn(worker, rank);
    const auto parts = worker.agree_on_parts(folder_.path());
    ASSERT_TRUE(parts.ok() && *parts);
    const auto files = worker.save(saved);
    ASSERT_TRUE(files.ok()) << files.status().to_string();
  });
  SftWorkerOptions here = options(ZeroLevel::kNone);
  here.device = "";
  auto alone = SftWorker::create(here, make_single_communicator());
  ASSERT_TRUE(alone.ok()) << alone.status().to_string();
  const runtime::Status read = (*alone)->load(saved);
  ASSERT_TRUE(read.ok()) << read.to_string();
  EXPECT_EQ(weights_of(**alone), expected);

  for (const ZeroLevel level : {ZeroLevel::kGradients, ZeroLevel::kWeights}) {
    on_ranks(options(level), [&](SftWorker& worker, int) {
      const runtime::Status again = worker.load(saved);
      ASSERT_TRUE(again.ok()) << again.to_string();
      EXPECT_EQ(weights_of(worker), expected);
    });
  }
}

TEST_F(ShardedDevice, AFrozenModelScoresAsAWholeOne) {
  const auto score = [](Transformer& there) {
    PackedBatch packed;
    const std::vector<std::int32_t> ids = {5, 6, 7, 8, 9};
    packed.append(ids, 2);
    const auto scored = there.token_logprobs(packed);
    EXPECT_TRUE(scored.ok()) << scored.status().to_string();
    there.end_pass();
    const auto values = elements_of(scored->logprobs_N);
    return Weights(values.begin(), values.end());
  };
  const TransformerOptions on_device{.threads = 1, .device = testing::tested_device()};
  auto whole = FrozenModel::load(model(), on_device, {});
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  const at::NoGradGuard none;
  const Weights expected = score((*whole)->transformer());
  testing::in_rank_processes(
      kShardingRanks, folder_.file("meeting"),
      [&](std::unique_ptr<Communicator> communicator, int) {
        auto shared = FrozenModel::load(model(), on_device, {communicator.get(), 0});
        ASSERT_TRUE(shared.ok()) << shared.status().to_string();
        EXPECT_TRUE((*shared)->is_shared());
        for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(score((*shared)->transformer()), expected);
        EXPECT_LT((*shared)->most_weights_there(),
                  (*shared)->transformer().parameters().arena_size());
      });
}

}  // namespace
}  // namespace rl
