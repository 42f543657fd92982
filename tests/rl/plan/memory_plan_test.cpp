#include "rl/plan/memory_plan.h"

#include <gtest/gtest.h>

#include "rl/model/parameters.h"
#include "tests/rl/plan/small_config.h"

namespace rl {
namespace {

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

TEST(MemoryPlan, MomentsAndSumsOfLeavesAreSharedOutOverWorkers) {
  EXPECT_EQ(sum_carriers(4, 4), 0) << "one round";
  EXPECT_EQ(sum_carriers(4, 3), 3);
  EXPECT_EQ(sum_carriers(0, 1), 0);
  const std::int64_t weights = 4 * weight_elements(small_config());
  const auto parts =
      training_memory(small_config(), {.forward_tokens = 10, .carriers = 2, .moment_shards = 4});
  EXPECT_EQ(bytes_of(parts, "gradients"), weights);
  EXPECT_EQ(bytes_of(parts, "optimizer"), 2 * weights / 4);
  EXPECT_EQ(bytes_of(parts, "sum of leaves"), weights / 2);
  EXPECT_EQ(bytes_of(training_memory(small_config(), {.forward_tokens = 10}), "sum of leaves"), -1);
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
  const std::int64_t contexts = 2 * device_context_bytes();  // a process each
  EXPECT_EQ(peak(false), 370 + contexts);                    // each keeps what it has had
  EXPECT_EQ(peak(true), 250 + contexts);                     // the policy alone
  EXPECT_EQ(device_memory({.role = "reward", .parts = {{"process", 5}}}).always, 0)
      << "rules need no device";
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

TEST(MemoryPlan, AttentionOnADeviceKeepsScoresAndGathers) {
  const ModelConfig config = small_config();
  MemoryOptions options{.forward_tokens = 10, .sequences = 64, .positions = 1'000'000};
  EXPECT_EQ(bytes_of(training_memory(config, options), "attention scores"), -1);
  options.on_device = true;
  const auto parts = training_memory(config, options);
  EXPECT_EQ(bytes_of(parts, "attention scores"), 3 * (128 << 20) + 2 * 10 * options.positions);
  EXPECT_EQ(bytes_of(parts, "gathered keys and values"), std::int64_t{512} << 20);
  EXPECT_GT(bytes_of(parts, "KV cache"), std::int64_t{1} << 30) << "the device alone bounds it";
  EXPECT_EQ(pass_bytes(parts), bytes_of(parts, "activations") +
                                   bytes_of(parts, "attention scores") +
                                   bytes_of(parts, "gathered keys and values"));
  EXPECT_EQ(bytes_of(host_memory(parts), "attention scores"), -1);
  options.positions = 10;
  EXPECT_EQ(bytes_of(training_memory(config, options), "attention scores"),
            3 * 2 * config.heads * 10 * 10 * 4 + 2 * 10 * 10);
}

TEST(MemoryPlan, PassesAreHalvedUntilTheyFit) {
  const ModelConfig config = small_config();
  const auto bytes = [&](std::int64_t tokens) {
    return pass_bytes(training_memory(config, {.forward_tokens = tokens, .output_tokens = tokens}));
  };
  EXPECT_EQ(tokens_that_fit(config, {}, 16'384, bytes(16'384)), 16'384);
  EXPECT_EQ(tokens_that_fit(config, {}, 16'384, bytes(16'384) - 1), 8192);
  EXPECT_EQ(tokens_that_fit(config, {}, 16'384, bytes(4096)), 4096);
  EXPECT_EQ(tokens_that_fit(config, {}, 16'384, 1), 2048) << "fewer pay for nothing";
  EXPECT_EQ(tokens_that_fit(config, {}, 500, 1), 500) << "as it was set";
}

TEST(MemoryPlan, TheCacheOfADeviceIsWhatIsLeft) {
  CachePlan plan{.device_total = 1000,
                 .device_free = 900,
                 .utilization = 0.5,
                 .weights = 100,
                 .passes = 200,
                 .token_bytes = 1,
                 .longest = 32,
                 .sequences = 100};
  EXPECT_EQ(*plan_cache(plan), 400) << "half of the device, with the weights";
  plan.utilization = 0.9;
  EXPECT_EQ(*plan_cache(plan), 700) << "what passes leave of what is free";
  plan.sequences = 2;
  EXPECT_EQ(*plan_cache(plan), 64) << "all that two sequences need";
  plan.longest = 30;
  EXPECT_EQ(*plan_cache(plan), 64) << "in whole blocks";
  plan.passes = 880;
  const auto none = plan_cache(plan);
  EXPECT_EQ(none.status().code(), runtime::ErrorCode::kResourceExhausted);
  for (const char* part : {"900 B of 1.0 KB free", "weights of 100 B", "880 B for passes",
                           "one sequence of 30 tokens (32 B)", "gpu_memory_utilization (0.9)",
                           "ppo_max_token_len_per_gpu"})
    EXPECT_NE(none.status().message().find(part), std::string::npos)
        << part << " in: " << none.status().message();
}

TEST(MemoryPlan, BytesAreShort) {
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1500), "1.5 KB");
  EXPECT_EQ(bytes_text(135'400'000), "135 MB");
}

}  // namespace
}  // namespace rl
