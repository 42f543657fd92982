#include "rl/train/memory_plan.h"

#include <gtest/gtest.h>

#include "rl/model/parameters.h"

namespace rl {
namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 8;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 4;
  config.intermediate_size = 16;
  config.vocab_size = 32;
  config.max_position_embeddings = 64;
  config.tie_word_embeddings = true;
  return config;
}

std::int64_t bytes_of(const std::vector<MemoryPart>& parts, const std::string& name) {
  for (const MemoryPart& part : parts) {
    if (part.name == name) return part.bytes;
  }
  return -1;
}

TEST(MemoryPlan, WeightsAreWhatIsAllocated) {
  EXPECT_EQ(weight_elements(small_config()), Parameters::zeros(small_config()).arena_size());
}

TEST(MemoryPlan, TrainingKeepsGradientsAndTwoMoments) {
  const auto parts =
      training_memory(small_config(), {.forward_tokens = 10, .sequences = 3, .positions = 20});
  const std::int64_t weights = 4 * weight_elements(small_config());
  EXPECT_EQ(bytes_of(parts, "weights"), weights);
  EXPECT_EQ(bytes_of(parts, "gradients"), weights);
  EXPECT_EQ(bytes_of(parts, "optimizer"), 2 * weights);
  // 3 sequences of 2 blocks of 16 tokens; 2 layers with 4 keys and 4 values.
  EXPECT_EQ(bytes_of(parts, "KV cache"), 3 * 32 * 2 * 8 * 4);
}

TEST(MemoryPlan, AnAdapterAloneHasGradients) {
  const auto parts =
      training_memory(small_config(), {.trained_elements = 100, .forward_tokens = 10});
  EXPECT_EQ(bytes_of(parts, "gradients"), 400);
  EXPECT_EQ(bytes_of(parts, "optimizer"), 800);
  EXPECT_EQ(bytes_of(parts, "KV cache"), -1);
  EXPECT_GT(bytes_of(parts, "activations"),
            bytes_of(training_memory(small_config(), {.forward_tokens = 10}), "activations"));
}

TEST(MemoryPlan, ProductsInBf16NeedCopiesOfTheirFactors) {
  const ModelConfig config = small_config();
  const auto parts = training_memory(config, {.forward_tokens = 10, .bf16 = true});
  EXPECT_EQ(bytes_of(parts, "bf16 copies"), 2 * (32 * 8 + 2 * 16 * 8 + 2 * 10 * 16));
  EXPECT_EQ(bytes_of(training_memory(config, {.forward_tokens = 10}), "bf16 copies"), -1);
}

TEST(MemoryPlan, LayersComputedAgainKeepWhatEntersThem) {
  const ModelConfig config = small_config();
  const auto activations = [&](bool recompute) {
    return bytes_of(training_memory(config, {.forward_tokens = 10, .recompute_layers = recompute}),
                    "activations");
  };
  EXPECT_EQ(activations(true),
            activations(false) / config.layers + 10 * config.layers * config.hidden_size * 4);
}

TEST(MemoryPlan, ActivationsGrowWithTokensAndAreLessWithoutBackward) {
  const auto one = training_memory(small_config(), {.forward_tokens = 10, .output_tokens = 5});
  const auto two = training_memory(small_config(), {.forward_tokens = 20, .output_tokens = 10});
  EXPECT_EQ(bytes_of(two, "activations"), 2 * bytes_of(one, "activations"));
  const auto scoring = scoring_memory(small_config(), {.forward_tokens = 10});
  EXPECT_LT(bytes_of(scoring, "activations"), bytes_of(one, "activations"));
  EXPECT_EQ(bytes_of(scoring, "gradients"), -1);
}

TEST(MemoryPlan, TheCacheHasALimit) {
  const auto parts = training_memory(small_config(), {.sequences = 64, .positions = 1'000'000'000});
  EXPECT_EQ(bytes_of(parts, "KV cache"), std::int64_t{1} << 30);
}

TEST(MemoryPlan, OnADeviceRolesTakeTurns) {
  const std::vector<MemoryPart> policy = {
      {"weights", 100}, {"gradients", 100}, {"optimizer", 200}, {"activations", 50}};
  const std::vector<MemoryPart> reference = {{"weights", 100}, {"activations", 20}};
  const auto peak = [&](bool leaves) {
    const DeviceMemory roles[] = {
        device_memory({.role = "policy",
                       .parts = policy,
                       .weights_leave = leaves,
                       .gradients_leave = leaves}),
        device_memory({.role = "reference", .parts = reference, .weights_leave = leaves})};
    return device_peak(roles);
  };
  EXPECT_EQ(peak(false), 370);  // each keeps what it has had
  EXPECT_EQ(peak(true), 250);   // the policy alone
  const DeviceMemory scoring[] = {{.always = 5, .at_work = 30},
                                  {.always = 0, .at_work = 40, .beside_others = true},
                                  {.always = 0, .at_work = 50}};
  EXPECT_EQ(device_peak(scoring), 95);
  const auto host = [](const std::vector<MemoryPart>& parts) {
    return RoleMemory{.role = "", .workers = 1, .parts = host_memory(parts)}.total();
  };
  EXPECT_EQ(host(policy), 400);
  EXPECT_EQ(host(reference), 100);
}

TEST(MemoryPlan, BytesAreShort) {
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1500), "1.5 KB");
  EXPECT_EQ(bytes_text(135'400'000), "135 MB");
}

}  // namespace
}  // namespace rl
