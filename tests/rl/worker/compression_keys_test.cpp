#include "rl/worker/compression_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"
#include "rl/worker/policy_options.h"

namespace rl {
namespace {

runtime::Result<Config> configured(std::vector<std::string> overrides,
                                   const KeyTable& keys = train_keys()) {
  return Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys});
}

std::string refused_for(const std::vector<std::string>& overrides,
                        const std::string& role = kActorRole) {
  const auto config = configured(overrides, role == kStageRole ? sft_keys() : train_keys());
  if (!config.ok()) return config.status().message();
  const auto options = learner_from_config(*config, role);
  return options.ok() ? "" : options.status().message();
}

const std::string kTopK = "trainer.gradient_compression=topk";
const std::string kBegin = "trainer.gradient_compression: must be none with ";

TEST(CompressionKeys, AllTrainedRolesReadThem) {
  const auto config = configured({kTopK, "trainer.gradient_topk_ratio=0.05"});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  for (const char* role : {kActorRole, kCriticRole}) {
    const auto options = learner_from_config(*config, role);
    ASSERT_TRUE(options.ok()) << options.status().to_string();
    EXPECT_EQ(options->compression.scheme, GradientCompression::kTopK);
    EXPECT_EQ(options->compression.topk_ratio, 0.05);
  }
  for (const KeyTable* keys : {&sft_keys(), &dpo_keys(), &kto_keys(), &rm_keys()}) {
    const auto stage = configured({"trainer.gradient_compression=fp16"}, *keys);
    ASSERT_TRUE(stage.ok()) << stage.status().to_string();
    const auto options = learner_from_config(*stage, kStageRole);
    ASSERT_TRUE(options.ok()) << options.status().to_string();
    EXPECT_EQ(options->compression.scheme, GradientCompression::kFp16);
  }
  EXPECT_FALSE(learner_from_config(*configured({}), kActorRole)->compression.is_on());
}

TEST(CompressionKeys, WhatDoesNotGoWithItIsRefusedByName) {
  EXPECT_EQ(refused_for({kTopK, "actor_rollout_ref.actor.fsdp_config.zero_level=1"}), "");
  EXPECT_EQ(refused_for({kTopK, "actor_rollout_ref.actor.fsdp_config.zero_level=2"}),
            kBegin +
                "actor_rollout_ref.actor.fsdp_config.zero_level=2, which adds gradients up unit "
                "by unit: take 0 or 1, got \"topk\" (from the command line)");
  EXPECT_TRUE(
      refused_for({kTopK, "critic.fsdp.zero_level=3"}, kCriticRole).starts_with(kBegin + "critic"));
  EXPECT_EQ(refused_for({kTopK, "critic.fsdp.zero_level=3"}), "") << "another role's";
  EXPECT_TRUE(
      refused_for({kTopK, "engine.zero_level=2"}, kStageRole).starts_with(kBegin + "engine"));
  EXPECT_TRUE(refused_for({kTopK, "trainer.gradient_leaves=4"})
                  .starts_with(kBegin + "trainer.gradient_leaves=4"));
  EXPECT_EQ(refused_for({kTopK, "trainer.device=cuda"}), "") << "sums are the host's";
  EXPECT_TRUE(refused_for({kTopK, "parallel_config.tensor_parallel_size=2"})
                  .starts_with(kBegin + "parallel_config.tensor_parallel_size=2:"));
  EXPECT_TRUE(refused_for({kTopK, "engine.ulysses_sequence_parallel_size=2"}, kStageRole)
                  .starts_with(kBegin + "engine.ulysses_sequence_parallel_size=2:"));
  EXPECT_EQ(refused_for({kTopK, "actor_rollout_ref.actor.optim.optimizer=Muon"}), "");
}

// By any of the keys that make one.
TEST(CompressionKeys, TeamsAreRefusedByTheKeysThatMakeThem) {
  const auto begins_with = [](const std::string& text, const std::string& keys) {
    EXPECT_TRUE(text.starts_with(kBegin + keys + ": workers that share passes")) << text;
  };
  for (const std::string role : {kActorRole, kCriticRole}) {
    const std::string context = role + ".megatron.context_parallel_size=2";
    begins_with(refused_for({kTopK, role + ".strategy=megatron", context}, role), context);
    EXPECT_EQ(refused_for({kTopK, context}, role), "") << "of a strategy that is not chosen";
    const std::string stages = role + ".megatron.pipeline_model_parallel_size=2";
    const std::string ranks = role + ".megatron.tensor_model_parallel_size=2";
    begins_with(refused_for({kTopK, role + ".strategy=megatron", ranks, stages}, role),
                stages + ", " + ranks);
  }
  begins_with(refused_for({kTopK, "engine.context_parallel_size=2"}, kStageRole),
              "engine.context_parallel_size=2");
}

TEST(CompressionKeys, ValuesOutOfRangeAreRefused) {
  EXPECT_NE(refused_for({"trainer.gradient_compression=powersgd"}).find("none"), std::string::npos);
  for (const char* ratio : {"0", "-0.1", "1.5"}) {
    const std::string text =
        refused_for({kTopK, std::string("trainer.gradient_topk_ratio=") + ratio});
    EXPECT_TRUE(text.starts_with("trainer.gradient_topk_ratio")) << text;
  }
}

TEST(CompressionKeys, WhatHasNoEffectIsSaid) {
  const auto alone = configured({kTopK});
  EXPECT_EQ(compression_text(*alone, 1),
            "trainer.gradient_compression=topk has no effect with one worker");
  EXPECT_EQ(compression_text(*alone, 2), "");
  EXPECT_EQ(compression_text(*configured({}), 1), "");
  const auto idle =
      configured({"trainer.gradient_compression=fp16", "trainer.gradient_topk_ratio=0.1"});
  std::string notes;
  for (const std::string& line : idle->notes()) notes += line + "\n";
  EXPECT_NE(notes.find("without effect: trainer.gradient_topk_ratio "
                       "(trainer.gradient_compression is not topk)"),
            std::string::npos)
      << notes;
}

}  // namespace
}  // namespace rl
