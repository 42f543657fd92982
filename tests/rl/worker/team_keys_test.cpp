#include "rl/worker/team_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rl/config/stage_keys.h"
#include "rl/worker/policy_options.h"

namespace rl {
namespace {

runtime::Result<std::int64_t> tensor_ranks(std::vector<std::string> overrides,
                                           const std::string& role = kActorRole) {
  const auto config = Config::load({.file = {}, .overrides = std::move(overrides)});
  if (!config.ok()) return config.status();
  const auto sharing = pass_sharing_from_config(*config, role);
  if (!sharing.ok()) return sharing.status();
  EXPECT_EQ(sharing->cut, PassCut::kOutputs);
  return sharing->ranks;
}

TEST(TeamKeys, ARolesOwnNumberCountsWithItsStrategy) {
  const std::string all = "parallel_config.tensor_parallel_size=2";
  const std::string own = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4";
  EXPECT_EQ(tensor_ranks({}).value(), 1);
  EXPECT_EQ(tensor_ranks({all}).value(), 2);
  EXPECT_EQ(tensor_ranks({all, own}).value(), 2);
  EXPECT_EQ(tensor_ranks({all, own, "actor_rollout_ref.actor.strategy=megatron"}).value(), 4);
  EXPECT_EQ(
      tensor_ranks({all, own, "actor_rollout_ref.actor.strategy=megatron"}, kCriticRole).value(),
      2);
  const auto config = Config::load({.file = {}, .overrides = {own}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(unused_strategy_keys(*config, kActorRole),
            (std::vector<std::string>{"actor_rollout_ref.actor.megatron.tensor_model_parallel_size "
                                      "has no effect without "
                                      "actor_rollout_ref.actor.strategy=megatron"}));
  EXPECT_TRUE(unused_strategy_keys(*config, kCriticRole).empty());
}

TEST(TeamKeys, AStagesNumberIsItsEngines) {
  const auto config = Config::load(
      {.file = {}, .overrides = {"engine.tensor_model_parallel_size=2"}, .keys = &sft_keys()});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(pass_sharing_from_config(*config, kStageRole)->ranks, 2);
}

TEST(TeamKeys, RowsAreSharedByTheSequencesKeys) {
  const auto sharing = [](const std::vector<std::string>& overrides) {
    const auto config = Config::load({.file = {}, .overrides = overrides});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return pass_sharing_from_config(*config, kActorRole);
  };
  const std::string own = "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2";
  const std::string context = "actor_rollout_ref.actor.megatron.context_parallel_size=4";
  const std::string megatron = "actor_rollout_ref.actor.strategy=megatron";
  EXPECT_EQ(sharing({own})->ranks, 2);
  EXPECT_EQ(sharing({own})->cut, PassCut::kRows);
  EXPECT_EQ(
      sharing({"actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size=3"})->ranks, 3);
  EXPECT_EQ(sharing({own, context})->ranks, 2);
  EXPECT_EQ(sharing({context, megatron})->ranks, 4);
  EXPECT_EQ(sharing({context, megatron})->cut, PassCut::kRows);
  const auto both = sharing({own, "parallel_config.tensor_parallel_size=2"});
  EXPECT_EQ(both.status().message(),
            "actor_rollout_ref.actor.ulysses_sequence_parallel_size: must be 1 with "
            "parallel_config.tensor_parallel_size=2, got 2 (from the command line)");
  const auto config = Config::load({.file = {}, .overrides = {own}});
  EXPECT_EQ(teams_text(*config, kActorRole, 4),
            "actor_rollout_ref.actor: 2 teams of 2 workers that share the rows of each pass");
  EXPECT_EQ(teams_text(*config, kCriticRole, 4), "");
}

TEST(TeamKeys, BothNamesOfASequencesRanksSayTheSame) {
  const auto sharing = [](const std::string& section, const std::string& role, int sequence,
                          int context, const KeyTable& keys) {
    const std::string megatron = role == kStageRole ? section : section + ".megatron";
    std::vector<std::string> overrides = {
        section + ".ulysses_sequence_parallel_size=" + std::to_string(sequence),
        megatron + ".context_parallel_size=" + std::to_string(context)};
    if (role != kStageRole) overrides.push_back(section + ".strategy=megatron");
    const auto config =
        Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return pass_sharing_from_config(*config, role);
  };
  const auto of_policy = [&](int sequence, int context) {
    return sharing(kActorRole, kActorRole, sequence, context, train_keys());
  };
  EXPECT_EQ(of_policy(2, 1)->ranks, 2);
  EXPECT_EQ(of_policy(1, 2)->ranks, 2);
  EXPECT_EQ(of_policy(2, 2)->ranks, 2);
  EXPECT_EQ(of_policy(2, 4).status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(of_policy(2, 4).status().message(),
            "actor_rollout_ref.actor.megatron.context_parallel_size: must be 1 or as many as "
            "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2, which means the same, got 4 "
            "(from the command line)");
  EXPECT_FALSE(sharing(kCriticRole, kCriticRole, 4, 2, train_keys()).ok());
  EXPECT_FALSE(sharing("engine", kStageRole, 4, 2, sft_keys()).ok());
  EXPECT_EQ(sharing("engine", kStageRole, 4, 1, sft_keys())->ranks, 4);
}

TEST(TeamKeys, ExpertsAreSharedWithTheRows) {
  const auto sharing = [](std::vector<std::string> overrides) {
    overrides.push_back("actor_rollout_ref.actor.strategy=megatron");
    const auto config = Config::load({.file = {}, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return pass_sharing_from_config(*config, kActorRole);
  };
  const std::string experts = "actor_rollout_ref.actor.megatron.expert_model_parallel_size=2";
  const std::string rows = "actor_rollout_ref.actor.ulysses_sequence_parallel_size=";
  EXPECT_EQ(sharing({experts})->ranks, 2);
  EXPECT_EQ(sharing({experts})->cut, PassCut::kRowsAndExperts);
  EXPECT_EQ(sharing({experts, rows + "2"})->cut, PassCut::kRowsAndExperts);
  EXPECT_FALSE(sharing({experts, rows + "4"}).ok());
  EXPECT_FALSE(sharing({experts, "parallel_config.tensor_parallel_size=2"}).ok());
  EXPECT_EQ(sharing({experts, "actor_rollout_ref.model.lora_rank=4"})->ranks, 2);
  const auto config = Config::load(
      {.file = {}, .overrides = {experts, "actor_rollout_ref.actor.strategy=megatron"}});
  ModelConfig model;
  model.kv_heads = 2;
  const auto dense = check_pass_sharing(*config, kActorRole, model, 2);
  EXPECT_NE(dense.message().find("expert_model_parallel_size"), std::string::npos);
  EXPECT_NE(dense.message().find("no experts"), std::string::npos);
  model.moe = MoeConfig{.experts = 4};
  EXPECT_TRUE(check_pass_sharing(*config, kActorRole, model, 2).ok());
}

TEST(TeamKeys, LayersGoOverTheStagesOfAPipeline) {
  const auto sharing = [](std::vector<std::string> overrides) {
    overrides.push_back("actor_rollout_ref.actor.strategy=megatron");
    const auto config = Config::load({.file = {}, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return pass_sharing_from_config(*config, kActorRole);
  };
  const std::string own = "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2";
  EXPECT_EQ(sharing({own})->stages, 2);
  EXPECT_EQ(sharing({own})->ranks, 1);
  EXPECT_EQ(sharing({"parallel_config.pipeline_parallel_size=3"})->stages, 3);
  EXPECT_EQ(sharing({own, "parallel_config.pipeline_parallel_size=3"})->stages, 2);
  EXPECT_EQ(sharing({own, "actor_rollout_ref.model.lora_rank=4"})->stages, 2);
  const auto config = Config::load({.file = {}, .overrides = {own}});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(pass_sharing_from_config(*config, kActorRole)->stages, 1);
  EXPECT_EQ(unused_strategy_keys(*config, kActorRole).size(), 1u);
  const auto all =
      Config::load({.file = {}, .overrides = {"parallel_config.pipeline_parallel_size=3"}});
  EXPECT_EQ(teams_text(*all, kCriticRole, 6),
            "critic: 2 teams of 3 workers that share the layers of each pass");
  ModelConfig model;
  model.layers = 2;
  EXPECT_EQ(check_pass_sharing(*all, kCriticRole, model, 6).message(),
            "parallel_config.pipeline_parallel_size: the model has 2 layers, which cannot be dealt "
            "to 3 stages of a pipeline");
}

TEST(TeamKeys, TheLayersOfAStageMayBeChunks) {
  const auto load = [](std::vector<std::string> overrides, const KeyTable& keys = train_keys()) {
    auto config = Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  };
  const std::string key = "actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size";
  const std::string stages = "parallel_config.pipeline_parallel_size=2";
  const std::string megatron = "actor_rollout_ref.actor.strategy=megatron";
  const Config both = load({megatron, stages, key + "=3"});
  EXPECT_EQ(pass_sharing_from_config(both, kActorRole)->chunks, 3);
  EXPECT_EQ(pass_sharing_from_config(both, kCriticRole)->chunks, 1);
  EXPECT_EQ(teams_text(both, kActorRole, 4),
            "actor_rollout_ref.actor: 2 teams of 2 workers that share the layers of each pass, 3 "
            "chunks of them each");
  ModelConfig model;
  model.layers = 5;
  EXPECT_EQ(check_pass_sharing(both, kActorRole, model, 4).message(),
            "parallel_config.pipeline_parallel_size, " + key +
                ": the model has 5 layers, which cannot be dealt to 2 stages of a pipeline with 3 "
                "chunks each");
  model.layers = 6;
  EXPECT_TRUE(check_pass_sharing(both, kActorRole, model, 4).ok());

  const Config unused = load({stages, key + "=3"});
  EXPECT_EQ(pass_sharing_from_config(unused, kActorRole)->chunks, 1);
  EXPECT_EQ(unused_strategy_keys(unused, kActorRole),
            std::vector<std::string>{
                key + " has no effect without actor_rollout_ref.actor.strategy=megatron"});
  const auto alone = pass_sharing_from_config(load({megatron, key + "=2"}), kActorRole);
  EXPECT_EQ(alone.status().message(),
            key +
                ": must be 1 without several stages of a pipeline, whose number is "
                "parallel_config.pipeline_parallel_size, got 2 (from the command line)");
  EXPECT_EQ(pass_sharing_from_config(load({megatron, key + "=1"}), kActorRole)->chunks, 1);

  const Config stage = load(
      {"engine.pipeline_model_parallel_size=2", "engine.virtual_pipeline_model_parallel_size=2"},
      sft_keys());
  EXPECT_EQ(pass_sharing_from_config(stage, kStageRole)->chunks, 2);
}

TEST(TeamKeys, RanksOfAStageShareItsLayers) {
  const auto load = [](std::vector<std::string> overrides) {
    overrides.push_back("parallel_config.pipeline_parallel_size=2");
    overrides.push_back("actor_rollout_ref.actor.strategy=megatron");
    auto config = Config::load({.file = {}, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  };
  const auto sharing = [&](std::vector<std::string> overrides) {
    return pass_sharing_from_config(load(std::move(overrides)), kActorRole);
  };
  const std::string tensor = "parallel_config.tensor_parallel_size=2";
  EXPECT_EQ(sharing({tensor})->team(), 4);
  EXPECT_EQ(sharing({tensor})->cut, PassCut::kOutputs);
  EXPECT_EQ(sharing({"actor_rollout_ref.actor.ulysses_sequence_parallel_size=3"})->team(), 6);
  EXPECT_EQ(sharing({"actor_rollout_ref.actor.megatron.expert_model_parallel_size=2"})->cut,
            PassCut::kRowsAndExperts);
  EXPECT_FALSE(sharing({tensor, "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2"}).ok());
  EXPECT_EQ(sharing({tensor, "actor_rollout_ref.model.lora_rank=4"})->team(), 4);
  const Config both = load({tensor});
  EXPECT_EQ(teams_text(both, kCriticRole, 8),
            "critic: 2 teams of 4 workers that share the layers of each pass: 2 stages of 2 that "
            "share the outputs of each pass");
  EXPECT_EQ(check_teams(both, kCriticRole, 6).message(),
            "parallel_config.pipeline_parallel_size: must be a divisor (times 2 of "
            "parallel_config.tensor_parallel_size) of the number of workers, which is 6, got 2 "
            "(from the command line)");
  ModelConfig model;
  model.layers = 2;
  model.kv_heads = 1;
  EXPECT_EQ(check_pass_sharing(both, kCriticRole, model, 4).message(),
            "parallel_config.pipeline_parallel_size, parallel_config.tensor_parallel_size: the "
            "model has 1 key heads, which cannot be dealt to 2 ranks that share each pass");
}

TEST(TeamKeys, WhatDoesNotGoWithThemIsNamed) {
  const std::string two = "parallel_config.tensor_parallel_size=2";
  const auto complaint = [&](const std::string& other) {
    return std::string(tensor_ranks({two, other}).status().message());
  };
  EXPECT_EQ(complaint("actor_rollout_ref.actor.optim.optimizer=Muon"), "");
  EXPECT_NE(complaint("trainer.device=cuda").find("trainer.device=cuda"), std::string::npos);
  EXPECT_FALSE(tensor_ranks({"parallel_config.tensor_parallel_size=0"}).ok());
}

TEST(TeamKeys, AStagesTeacherGoesWithEachOfThem) {
  const std::string teacher = "distillation.teacher.path=a";
  const auto sharing = [](std::vector<std::string> overrides) {
    const auto config =
        Config::load({.file = {}, .overrides = std::move(overrides), .keys = &sft_keys()});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return pass_sharing_from_config(*config, kStageRole);
  };
  EXPECT_TRUE(sharing({teacher}).ok());
  for (const char* key :
       {"engine.tensor_model_parallel_size", "engine.context_parallel_size",
        "engine.ulysses_sequence_parallel_size", "engine.expert_model_parallel_size",
        "engine.pipeline_model_parallel_size", kTensorRanksKey}) {
    EXPECT_EQ(sharing({std::string(key) + "=2", teacher})->team(), 2) << key;
  }
}

TEST(TeamKeys, MustDivideTheWorkersAndFindHeads) {
  const auto config =
      Config::load({.file = {}, .overrides = {"parallel_config.tensor_parallel_size=2"}});
  ASSERT_TRUE(config.ok());
  ModelConfig model;
  model.kv_heads = 2;
  EXPECT_TRUE(check_pass_sharing(*config, kActorRole, model, 4).ok());
  const auto odd = check_pass_sharing(*config, kActorRole, model, 3);
  EXPECT_NE(odd.message().find("parallel_config.tensor_parallel_size"), std::string::npos);
  EXPECT_NE(odd.message().find("3"), std::string::npos);
  EXPECT_EQ(check_teams(*config, kActorRole, 3).message(), odd.message());
  model.kv_heads = 1;
  EXPECT_TRUE(check_teams(*config, kActorRole, 4).ok());
  const auto few = check_pass_sharing(*config, kActorRole, model, 4);
  EXPECT_NE(few.message().find("1 key heads"), std::string::npos);
  EXPECT_EQ(teams_text(*config, kActorRole, 4),
            "actor_rollout_ref.actor: 2 teams of 2 workers that share the outputs of each pass");
}

}  // namespace
}  // namespace rl
