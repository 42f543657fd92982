#include "rl/plan/flops.h"

#include <gtest/gtest.h>

#include <vector>

#include "rl/plan/memory_plan.h"

namespace rl {
namespace {

ModelConfig flops_config() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 64;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 128;
  config.vocab_size = 256;
  config.max_position_embeddings = 128;
  config.tie_word_embeddings = true;
  return config;
}

TEST(TrainingFlops, AreSixForEachWeightAndTokenAndAttention) {
  const ModelConfig config = flops_config();
  const std::vector<std::int64_t> lengths = {10, 30};
  const double weights = static_cast<double>(weight_elements(config));
  EXPECT_DOUBLE_EQ(training_flops(config, lengths), 6 * weights * 40 + 12.0 * (100 + 900) * 64 * 2);
}

TEST(TrainingFlops, CountATableOfEmbeddingsOnlyWhereItIsTheOutputLayer) {
  ModelConfig untied = flops_config();
  untied.tie_word_embeddings = false;
  const std::vector<std::int64_t> lengths = {10};
  EXPECT_DOUBLE_EQ(training_flops(untied, lengths), training_flops(flops_config(), lengths));
}

TEST(TrainingFlops, CountTheExpertsThatATokenTakes) {
  ModelConfig two = flops_config();
  two.family = "mixtral";
  two.moe = MoeConfig{.experts = 8, .experts_per_token = 2, .intermediate_size = 128};
  ModelConfig three = two;
  three.moe->experts_per_token = 3;
  const std::vector<std::int64_t> lengths = {1};
  EXPECT_DOUBLE_EQ(training_flops(three, lengths) - training_flops(two, lengths),
                   6.0 * 2 * 3 * 64 * 128);
}

TEST(PeakFlops, AreMeasured) {
  const double peak = measured_peak_flops(c10::Device(c10::kCPU), false);
  EXPECT_GT(peak, 1e8);
  EXPECT_LT(peak, 1e15);
}

}  // namespace
}  // namespace rl
