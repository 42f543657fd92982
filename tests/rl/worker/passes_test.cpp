#include "rl/worker/passes.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;
using MicroBatches = std::vector<MicroBatch>;

class PassesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("starling-passes-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ASSERT_TRUE(
        make_toy_model(folder_, {.layers = 1, .hidden_size = 32, .intermediate_size = 32}).ok());
    model_ = std::move(*Transformer::load(folder_, {.threads = 1}));
    model_->enable_gradients();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Row i is a sequence of 4 + i tokens, of which the last three are targets.
  PassInput input() {
    return {.pack =
                [this](const MicroBatch& rows) {
                  ++packed_;
                  PackedBatch packed;
                  for (std::int64_t row = rows.first; row < rows.last; ++row) {
                    std::vector<std::int32_t> ids;
                    for (std::int64_t i = 0; i < 4 + row; ++i)
                      ids.push_back(static_cast<std::int32_t>(4 + (row + i * i) % 20));
                    packed.append(ids, 1 + row);
                  }
                  return packed;
                },
            .wanted = {.logprobs = LogprobOptions()}};
  }

  static Result<at::Tensor> likelihood(const Outputs& outputs, const MicroBatch&,
                                       const PackedBatch&, Metrics& metrics) {
    const at::Tensor loss = -outputs.logprobs.logprobs_N.sum();
    metrics["loss"] += loss.item<double>();
    return loss;
  }

  at::Tensor learned(const MicroBatches& micro_batches, Metrics& metrics,
                     const PassOptions& options = {}) {
    model_->zero_gradients();
    EXPECT_TRUE(Passes(*model_, options).learn(micro_batches, input(), likelihood, metrics).ok());
    return model_->gradients().arena().clone();
  }

  fs::path folder_;
  std::unique_ptr<Transformer> model_;
  int packed_ = 0;
};

TEST_F(PassesTest, AnIdlePassComputesNothing) {
  Metrics metrics, with_idle;
  const at::Tensor expected = learned({{0, 2}, {2, 3}}, metrics);
  EXPECT_EQ(packed_, 2);
  EXPECT_GT(expected.norm().item<double>(), 0.0);
  const at::Tensor got = learned({{0, 2}, {2, 3}, {3, 3}}, with_idle);
  EXPECT_EQ(packed_, 4);
  EXPECT_TRUE(got.equal(expected));
  EXPECT_EQ(metrics, with_idle);
}

TEST_F(PassesTest, SoDoesAPassWithoutTargets) {
  const PassInput nothing{.pack =
                              [](const MicroBatch&) {
                                PackedBatch packed;
                                packed.append(std::vector<std::int32_t>{4, 5}, 2);
                                return packed;
                              },
                          .wanted = {.logprobs = LogprobOptions()}};
  const MicroBatch all{0, 1};
  Metrics metrics;
  EXPECT_TRUE(Passes(*model_, {}).learn({&all, 1}, nothing, likelihood, metrics).ok());
  EXPECT_TRUE(metrics.empty());
}

TEST_F(PassesTest, LayersComputedAgainGiveTheSameBits) {
  Metrics metrics, again;
  const at::Tensor kept = learned({{0, 3}}, metrics);
  EXPECT_TRUE(learned({{0, 3}}, again, {.recompute_layers = true}).equal(kept));
  EXPECT_EQ(metrics, again);
  EXPECT_FALSE(learned({{0, 3}}, again, {.bf16 = true}).equal(kept));
}

TEST_F(PassesTest, ScoringBuildsNoGraph) {
  std::vector<MicroBatch> seen;
  const MicroBatches micro_batches{{0, 1}, {1, 3}, {3, 3}};
  const Status scored = Passes(*model_, {})
                            .score(micro_batches, input(),
                                   [&](const Outputs& outputs, const MicroBatch& rows,
                                       const PackedBatch& packed) -> Status {
                                     EXPECT_FALSE(outputs.logprobs.logprobs_N.requires_grad());
                                     EXPECT_EQ(outputs.logprobs.logprobs_N.numel(),
                                               static_cast<std::int64_t>(packed.targets.size()));
                                     seen.push_back(rows);
                                     return {};
                                   });
  EXPECT_TRUE(scored.ok()) << scored.to_string();
  EXPECT_EQ(seen, (MicroBatches{{0, 1}, {1, 3}}));
}

TEST_F(PassesTest, TheFirstFailureEndsThem) {
  const MicroBatches micro_batches{{0, 1}, {1, 2}};
  Metrics metrics;
  const Status failed = Passes(*model_, {})
                            .learn(
                                micro_batches, input(),
                                [](const Outputs&, const MicroBatch&, const PackedBatch&,
                                   Metrics&) -> Result<at::Tensor> {
                                  return runtime::invalid_argument("no such loss");
                                },
                                metrics);
  EXPECT_EQ(failed.message(), "no such loss");
  EXPECT_EQ(packed_, 1);
}

}  // namespace
}  // namespace rl
