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
  const std::int64_t weights = 4 * weight_elements(small_config());
  const auto sum_of_leaves = [](std::int64_t leaves, std::int64_t workers) {
    return bytes_of(
        training_memory(small_config(), {.workers = workers, .gradient_leaves = leaves}),
        "sum of leaves");
  };
  EXPECT_EQ(sum_of_leaves(4, 4), -1) << "one round";
  EXPECT_EQ(sum_of_leaves(0, 1), -1);
  EXPECT_EQ(sum_of_leaves(4, 3), weights / 3);
  EXPECT_EQ(sum_of_leaves(4, 1), weights);
  const auto parts = training_memory(
      small_config(), {.forward_tokens = 10, .workers = 4, .zero = ZeroLevel::kMoments});
  EXPECT_EQ(bytes_of(parts, "weights"), weights);
  EXPECT_EQ(bytes_of(parts, "gradients"), weights);
  EXPECT_EQ(bytes_of(parts, "optimizer"), 2 * weights / 4);
}

TEST(MemoryPlan, CompressedGradientsLeaveAResidualOnEachOfSeveralWorkers) {
  const std::int64_t weights = 4 * weight_elements(small_config());
  for (const ZeroLevel zero : {ZeroLevel::kNone, ZeroLevel::kMoments}) {
    const auto parts = training_memory(
        small_config(),
        {.forward_tokens = 10, .workers = 2, .zero = zero, .compresses_gradients = true});
    EXPECT_EQ(bytes_of(parts, "residual of gradients"), weights);
    EXPECT_EQ(bytes_of(parts, "buckets of sums"), weights) << "a small model is one bucket";
  }
  const auto alone =
      training_memory(small_config(), {.forward_tokens = 10, .compresses_gradients = true});
  EXPECT_EQ(bytes_of(alone, "residual of gradients"), -1) << "nothing is sent";
  const auto adapter = training_memory(
      small_config(), {.trained_elements = 100, .workers = 2, .compresses_gradients = true});
  EXPECT_EQ(bytes_of(adapter, "residual of gradients"), 400);
}

// Elements of the model: embeddings 256, layers 2 x 608 (norms take 16 each), the last norm 16;
// 1488 in all, 5952 bytes.
TEST(MemoryPlan, GradientsThatAreKeptOnceAreThereByUnits) {
  ASSERT_EQ(weight_elements(small_config()), 1488);
  MemoryOptions options{.forward_tokens = 10,
                        .workers = 4,
                        .zero = ZeroLevel::kGradients,
                        .gradient_leaves = 8,
                        .one_pass_leaves = true};
  const auto parts = training_memory(small_config(), options);
  EXPECT_EQ(bytes_of(parts, "weights"), 5952);
  EXPECT_EQ(bytes_of(parts, "gradients"), -1);
  EXPECT_EQ(bytes_of(parts, "sum of gradients"), 1488);
  EXPECT_EQ(bytes_of(parts, "sum of leaves"), -1) << "that is the sum of gradients";
  EXPECT_EQ(bytes_of(parts, "optimizer"), 2976);
  EXPECT_EQ(bytes_of(parts, "gradients of a leaf"), 4 * (256 + 608 + 608))
      << "tied embeddings stay, and one layer is on its way";
  EXPECT_EQ(bytes_of(parts, "buckets of sums"), 4 * 608) << "a unit";
  EXPECT_EQ(bytes_of(parts, "gathered weights"), -1);
  const std::int64_t passes = 5760 + 5888 + 2432;  // activations: 576 bytes a token
  EXPECT_EQ(pass_bytes(parts), passes);
  EXPECT_EQ((RoleMemory{.role = "", .parts = parts}.total()), 5952 + 1488 + 2976 + passes);
  options.one_pass_leaves = false;
  EXPECT_EQ(bytes_of(training_memory(small_config(), options), "gradients of a leaf"), 5952)
      << "the passes of a leaf add up";
  options.workers = 1;
  options.zero = ZeroLevel::kWeights;
  const auto alone = training_memory(small_config(), options);
  EXPECT_EQ(bytes_of(alone, "gradients"), 5952) << "there is nothing to share out";
  EXPECT_EQ(bytes_of(alone, "weights"), 5952);
  ModelConfig untied = small_config();
  untied.tie_word_embeddings = false;
  untied.layers = 1;
  options.workers = 4;
  options.one_pass_leaves = true;
  EXPECT_EQ(bytes_of(training_memory(untied, options), "gradients of a leaf"),
            4 * (256 + 608 + 272))
      << "the first layer with the embeddings";
  untied.vocab_size = 160;
  EXPECT_EQ(bytes_of(training_memory(untied, options), "gradients of a leaf"),
            4 * (1280 + 608 + 1296));
}

TEST(MemoryPlan, WeightsThatAreKeptOnceAreGatheredToGenerate) {
  MemoryOptions options{.forward_tokens = 10,
                        .sequences = 3,
                        .positions = 20,
                        .workers = 4,
                        .zero = ZeroLevel::kWeights,
                        .one_pass_leaves = true};
  const std::int64_t cache = 3 * 32 * 2 * 8 * 4;
  auto parts = training_memory(small_config(), options);
  EXPECT_EQ(bytes_of(parts, "weights"), 1488);
  EXPECT_EQ(bytes_of(parts, "sum of gradients"), 1488);
  EXPECT_EQ(bytes_of(parts, "gathered units"), 4 * (608 + 608)) << "two layers";
  EXPECT_EQ(bytes_of(parts, kGatheredPart), 5952);
  const std::int64_t passes = 5760 + 5888 + 2432 + 4864;
  EXPECT_EQ(bytes_in_calls(parts), passes) << "more than the gathered weights, which go first";
  EXPECT_EQ((RoleMemory{.role = "", .parts = parts}.total()), 1488 + 1488 + 2976 + cache + passes);
  options.sequences = 0;
  EXPECT_EQ(bytes_of(training_memory(small_config(), options), kGatheredPart), -1)
      << "a critic generates nothing";
  options.sequences = 3;
  options.trained_elements = 100;
  options.forward_tokens = 0;
  parts = training_memory(small_config(), options);
  EXPECT_EQ(bytes_of(parts, "weights"), 1488 + 400);
  EXPECT_EQ(bytes_of(parts, "gradients"), 400) << "an adapter's are on each";
  EXPECT_EQ(bytes_of(parts, "gradients of a leaf"), -1);
  EXPECT_EQ(bytes_of(parts, "optimizer"), 200);
  EXPECT_EQ((RoleMemory{.role = "", .parts = parts}.total()), 1888 + 400 + 200 + cache + 5952);
}

TEST(MemoryPlan, OfAGroupThatKeepsTheWeightsOnceAWorkerHasMoreOfThem) {
  MemoryOptions options{.forward_tokens = 10, .workers = 4, .zero = ZeroLevel::kWeights};
  const auto once = training_memory(small_config(), options);
  options.shard_ranks = 2;
  const auto twice = training_memory(small_config(), options);
  ASSERT_EQ(twice.size(), once.size());
  EXPECT_EQ(bytes_of(twice, "weights"), 5952 / 2);
  for (const MemoryPart& part : once) {
    if (part.name == "weights") continue;
    EXPECT_EQ(bytes_of(twice, part.name), part.bytes) << part.name;
  }
  options.zero = ZeroLevel::kGradients;
  EXPECT_EQ(bytes_of(training_memory(small_config(), options), "weights"), 5952);
}

TEST(MemoryPlan, AnAdapterOfWholeWeightsIsOfLevelOne) {
  MemoryOptions options{.trained_elements = 100, .workers = 4, .zero = ZeroLevel::kGradients};
  const auto parts = training_memory(small_config(), options);
  options.zero = ZeroLevel::kMoments;
  const auto expected = training_memory(small_config(), options);
  ASSERT_EQ(parts.size(), expected.size());
  for (const MemoryPart& part : expected) EXPECT_EQ(bytes_of(parts, part.name), part.bytes);
}

// Its gradients are computed where layers or experts are, and learned from where rows are.
TEST(MemoryPlan, AnAdapterInStagesHasItsLeafsGradientsApart) {
  MemoryOptions options{.trained_elements = 100,
                        .sequences = 3,
                        .positions = 20,
                        .workers = 2,
                        .sharing = {.ranks = 2}};
  const auto outputs = training_memory(small_config(), options);
  EXPECT_EQ(bytes_of(outputs, "gradients"), 400);
  EXPECT_EQ(bytes_of(outputs, kGatheredPart), 5952) << "a worker's passes read its part alone";
  options.sharing = {.stages = 2};
  const auto stages = training_memory(small_config(), options);
  EXPECT_EQ(bytes_of(stages, "gradients"), 800);
  EXPECT_EQ(bytes_of(stages, "optimizer"), 400);
  EXPECT_EQ(bytes_of(stages, kGatheredPart), 5952);
}

// Of two stages with a chunk each the first one has two passes in flight. With two chunks each
// those of six chunks are: two ahead of the stage behind, up to three of a group, and the present
// one.
TEST(MemoryPlan, ChunksOfStagesHaveMorePassesInFlight) {
  ModelConfig config = small_config();
  config.layers = 4;
  const auto activations = [&](const PassSharing& sharing) {
    const MemoryOptions options{.forward_tokens = 64, .workers = 2, .sharing = sharing};
    return bytes_of(training_memory(config, options), "activations");
  };
  const std::int64_t one = activations({.stages = 2});
  EXPECT_GT(one, 0);
  EXPECT_EQ(2 * activations({.stages = 2, .chunks = 2}), 3 * one);
  MemoryOptions options{.forward_tokens = 64, .workers = 2, .sharing = {.stages = 2, .chunks = 2}};
  options.one_pass_leaves = true;
  EXPECT_EQ(2 * bytes_of(training_memory(config, options), "activations"), one);
}

TEST(MemoryPlan, EachWorkerCopiesItsPartForACheckpoint) {
  const auto copied = [](ZeroLevel zero, std::int64_t trained = -1, std::int64_t workers = 2) {
    return checkpoint_memory(small_config(),
                             {.trained_elements = trained, .workers = workers, .zero = zero}, true);
  };
  EXPECT_EQ(bytes_of(copied(ZeroLevel::kNone), kCheckpointPart), 3 * 5952) << "of the first alone";
  for (const ZeroLevel level : {ZeroLevel::kMoments, ZeroLevel::kGradients, ZeroLevel::kWeights}) {
    EXPECT_EQ(bytes_of(copied(level), kCheckpointPart), -1);
    EXPECT_EQ(bytes_of(copied(level), kCheckpointShare), 3 * 2976);
    EXPECT_EQ(bytes_of(copied(level, 100), kCheckpointShare), 800) << "an adapter is on each";
    EXPECT_EQ(bytes_of(copied(level, -1, 1), kCheckpointPart), 3 * 5952) << "of one worker";
    EXPECT_TRUE(checkpoint_memory(small_config(), {.workers = 2, .zero = level}, false).empty())
        << "it is written as it is";
  }
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

// Of a model without training: its part, and two units at a time.
TEST(MemoryPlan, WhatOnlyScoresMayBeKeptOnce) {
  const MemoryOptions whole{.forward_tokens = 10, .workers = 4};
  MemoryOptions once = whole;
  once.zero = ZeroLevel::kWeights;
  const std::int64_t weights = 4 * weight_elements(small_config());
  EXPECT_EQ(bytes_of(scoring_memory(small_config(), whole), "weights"), weights);
  EXPECT_EQ(bytes_of(scoring_memory(small_config(), whole), "gathered units"), -1);
  EXPECT_EQ(bytes_of(scoring_memory(small_config(), once), "weights"), weights / 4);
  EXPECT_EQ(bytes_of(scoring_memory(small_config(), once), "gathered units"), 4 * (608 + 608));
  once.shard_ranks = 2;
  EXPECT_EQ(bytes_of(scoring_memory(small_config(), once), "weights"), weights / 2);
  once.workers = 1;
  EXPECT_EQ(bytes_of(scoring_memory(small_config(), once), "weights"), weights) << "alone";
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
                                  {.always = 0, .at_work = 40, .concurrent = true},
                                  {.always = 0, .at_work = 50}};
  EXPECT_EQ(device_peak(scoring), 95);
  const auto host = [](const std::vector<MemoryPart>& parts) {
    return RoleMemory{.role = "", .workers = 1, .parts = host_memory(parts)}.total();
  };
  EXPECT_EQ(host(policy), 400);
  EXPECT_EQ(host(reference), 100);
}

TEST(MemoryPlan, GradientsAreAddedUpOnTheHost) {
  MemoryOptions options{.workers = 2, .compresses_gradients = true, .on_device = true};
  const auto parts = training_memory(small_config(), options);
  options.compresses_gradients = false;
  const auto whole = training_memory(small_config(), options);
  const auto on_device = [](const std::vector<MemoryPart>& of) {
    return device_memory({.role = "", .parts = of}).always;
  };
  ASSERT_GT(bytes_of(parts, "buckets of sums"), 0);
  EXPECT_EQ(bytes_of(host_memory(parts), "buckets of sums"), bytes_of(parts, "buckets of sums"));
  EXPECT_EQ(on_device(parts), on_device(whole));
}

TEST(MemoryPlan, WhatComesByUnitsIsOnADeviceInPassesAlone) {
  const ModelConfig config = small_config();
  MemoryOptions options{.forward_tokens = 10, .output_tokens = 10, .workers = 4, .on_device = true};
  const auto plan = [&](ZeroLevel level, std::int64_t sequences) {
    options.zero = level;
    options.sequences = sequences;
    options.positions = sequences > 0 ? 10 : 0;
    return training_memory(config, options);
  };
  const auto device = [](const std::vector<MemoryPart>& parts) {
    return device_memory({.role = "", .parts = parts});
  };
  const std::int64_t weights = 4 * weight_elements(config);
  const auto whole = plan(ZeroLevel::kNone, 0), gradients = plan(ZeroLevel::kGradients, 0),
             units = plan(ZeroLevel::kWeights, 0);
  EXPECT_EQ(device(whole).at_work, 0);
  EXPECT_EQ(device(whole).always - device(gradients).always, weights) << "the gradients";
  EXPECT_EQ(device(gradients).at_work, bytes_of(gradients, "gradients of a leaf"));
  EXPECT_EQ(device(gradients).always - device(units).always, weights) << "the part is on the host";
  EXPECT_EQ(device(units).at_work,
            bytes_of(units, "gathered units") + bytes_of(units, "gradients of a leaf"));
  EXPECT_EQ(bytes_of(whole, "units between host and device"), -1);
  EXPECT_EQ(2 * bytes_of(gradients, "units between host and device"),
            bytes_of(units, "units between host and device"));
  EXPECT_GT(bytes_of(host_memory(units), "units between host and device"), 0);

  const auto generating = plan(ZeroLevel::kWeights, 1);
  ASSERT_EQ(bytes_of(generating, kGatheredPart), weights);
  EXPECT_GE(device(generating).at_work, weights) << "all weights are there to generate";
  EXPECT_EQ(bytes_of(host_memory(generating), kGatheredPart), -1);
}

TEST(MemoryPlan, AProcessWithADeviceHasItsLibraries) {
  EXPECT_EQ(process_memory(true, true).bytes - process_memory(true).bytes,
            process_memory(false, true).bytes - process_memory(false).bytes);
  EXPECT_GT(process_memory(true, true).bytes, 1'000'000'000);
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
