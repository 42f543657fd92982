#include "rl/worker/stage_worker_options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/config/key_table.h"
#include "rl/worker/preference_objective.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;

Result<StageWorkerOptions> stage_options(std::vector<std::string> keys,
                                         const std::string& stage = "sft",
                                         const std::string& device = "cpu") {
  const auto config = Config::load({std::nullopt, std::move(keys), find_key_table(stage)});
  if (!config.ok()) return config.status();
  return StageWorkerOptions::from_config(*config, device);
}

TEST(StageWorkerOptions, AreReadFromTheKeysOfEveryStage) {
  for (const char* stage : {"sft", "dpo", "kto", "rm"}) {
    const auto usual = stage_options({}, stage);
    ASSERT_TRUE(usual.ok()) << stage << ": " << usual.status().to_string();
    EXPECT_FALSE(usual->adapter) << stage << ": all weights are trained";
    const auto options =
        stage_options({"trainer.seed=7", "model.enable_gradient_checkpointing=true",
                       "engine.dtype=bfloat16", "optim.clip_grad=0.25", "optim.weight_decay=0.5"},
                      stage);
    ASSERT_TRUE(options.ok()) << stage << ": " << options.status().to_string();
    EXPECT_EQ(options->seed, 7u) << stage;
    EXPECT_TRUE(options->recompute_layers) << stage;
    EXPECT_TRUE(options->bf16) << stage;
    EXPECT_EQ(options->learner.grad_norm_max, 0.25) << stage;
    EXPECT_EQ(options->learner.adamw.weight_decay, 0.5F) << stage;
  }
}

TEST(StageWorkerOptions, AnAdapterIsTheStagesModels) {
  const auto options =
      stage_options({"model.lora_rank=4", "model.target_modules=[q_proj]", "trainer.seed=7"});
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  ASSERT_TRUE(options->adapter);
  EXPECT_EQ(options->adapter->lora.rank, 4);
  EXPECT_EQ(options->adapter->lora.target_modules, std::vector<std::string>{"q_proj"});
  EXPECT_EQ(options->adapter->seed, 7u);
}

TEST(StageWorkerOptions, ADeviceComputesInBf16UnlessTheKeySaysOtherwise) {
  EXPECT_FALSE(stage_options({})->bf16);
  EXPECT_TRUE(stage_options({}, "sft", "cuda:0")->bf16);
  EXPECT_FALSE(stage_options({"engine.dtype=float32"}, "sft", "cuda:0")->bf16);
}

TEST(StageWorkerOptions, AValueOutOfRangeIsNamed) {
  for (const std::string key : {"optim.weight_decay", "model.lora_rank", "model.lora_dropout"}) {
    support::expect_failure(stage_options({key + "=-1"}).status(), ErrorCode::kInvalidArgument,
                            {key.substr(key.find('.') + 1)});
  }
}

Result<PreferenceObjective> objective_of(const std::string& stage, std::vector<std::string> keys) {
  const auto config = Config::load({std::nullopt, std::move(keys), find_key_table(stage)});
  if (!config.ok()) return config.status();
  return PreferenceObjective::from_config(*config);
}

TEST(PreferenceKeys, EachStageHasItsLossWithItsDefaults) {
  EXPECT_EQ(objective_of("dpo", {})->loss, PreferenceLossKind::kSigmoid);
  EXPECT_EQ(objective_of("kto", {})->loss, PreferenceLossKind::kKto);
  EXPECT_EQ(objective_of("rm", {})->loss, PreferenceLossKind::kBradleyTerry);
  EXPECT_EQ(objective_of("dpo", {})->beta, 0.1);
  EXPECT_EQ(objective_of("dpo", {"preference.loss=simpo"})->beta, 2.0) << "as its authors have it";
  EXPECT_EQ(objective_of("dpo", {"preference.loss=simpo", "preference.beta=0.5"})->beta, 0.5);
}

}  // namespace
}  // namespace rl
