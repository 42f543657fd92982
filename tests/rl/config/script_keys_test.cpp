// Keys that verl's public scripts set: older names, what belongs to parts that are not here, and
// what must be refused by its own name.
#include <gtest/gtest.h>

#include "rl/config/config.h"

namespace rl {
namespace {

std::string refusal(const std::string& override) {
  const auto config = Config::load({std::nullopt, {override}});
  return config.ok() ? "" : config.status().message();
}

TEST(ScriptKeys, OlderNamesMeanWhatTheyMeant) {
  const auto config =
      Config::load({std::nullopt,
                    {"reward_model.enable=true", "reward_model.model_path=/m",
                     "reward_model.inference.name=sglang", "actor_rollout_ref.model.use_rmpad=True",
                     "algorithm.rollout_correction.use_pure_rollout_correction=true",
                     "distillation.teacher_model.model_path=/t",
                     "actor_rollout_ref.rollout.multi_turn.max_turns=3"}});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_string("reward.reward_model.model_path"), "/m");
  EXPECT_TRUE(config->is_set("actor_rollout_ref.model.use_remove_padding"));
  EXPECT_TRUE(*config->get_bool("algorithm.rollout_correction.use_policy_gradient"));
  EXPECT_EQ(*config->get_string("distillation.teacher_models.teacher_model.model_path"), "/t");
  EXPECT_EQ(*config->get_int("actor_rollout_ref.rollout.multi_turn.max_assistant_turns"), 3);
  EXPECT_EQ(refusal("reward_model.sandbox_fusion_url=http://x"), "");
}

// As verl's example for several teachers sets them.
TEST(ScriptKeys, TeachersHaveNamesOfTheUsersChoice) {
  const std::string maths = "+distillation.teacher_models.maths.";
  const auto config = Config::load(
      {std::nullopt,
       {maths + "key=openai/gsm8k", maths + "model_path=/t", maths + "num_replicas=1",
        maths + "inference.name=vllm", maths + "inference.tensor_model_parallel_size=2",
        "distillation.teacher_models.code.key=7"}});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->get_string("distillation.teacher_models.maths.model_path"), "/t");
  EXPECT_EQ(*config->get_string("distillation.teacher_models.code.key"), "7")
      << "a text that looks like something else";
  EXPECT_EQ(config->find("distillation.teacher_models.*"), nullptr) << "no default";
  EXPECT_NE(refusal("distillation.teacher_models.maths.modle_path=/t")
                .find("unknown key 'distillation.teacher_models.maths.modle_path'"),
            std::string::npos);
  EXPECT_NE(refusal("distillation.teacher_models.maths=/t").find("is a section"),
            std::string::npos);
  EXPECT_NE(refusal("distillation.teacher_models.maths.model_path=[a]")
                .find("expected a string or null, got a list"),
            std::string::npos)
      << refusal("distillation.teacher_models.maths.model_path=[a]");
}

TEST(ScriptKeys, WhatChangesNothingPassesAndItsOppositeDoesNot) {
  for (const char* passes :
       {"model_engine=dp", "distillation.enabled=False", "distillation.nnodes=2",
        "actor_rollout_ref.ref.profiler.discrete=True",
        "actor_rollout_ref.actor.profile_ranks=[0,1]", "profile.options.level=level1",
        "actor_rollout_ref.rollout.over_sample_rate=0.1",
        "actor_rollout_ref.rollout.skip_rollout=False", "algorithm.rollout_is_level=token",
        // Of verl's own default file, as it is there.
        "critic.profiler.tool_config.torch.name=null",
        "actor_rollout_ref.actor.fsdp_config.turbo_config.enable=False",
        "actor_rollout_ref.ref.fsdp_config.qat.enable=False",
        "reward.reward_model.rollout.max_num_seqs=1024", "skip.rollout.enable=False",
        "skip.rollout.action=cache", "trainer.v1.sampler.custom_sampler.path=null",
        "algorithm.filter_groups._target_=verl.trainer.config.FilterGroupsConfig"}) {
    EXPECT_EQ(refusal(passes), "") << passes;
  }
  EXPECT_EQ(refusal("model_engine=megatron"), "")
      << "as --config-name=ppo_megatron_trainer and actor.strategy=megatron";
  EXPECT_NE(refusal("actor_rollout_ref.rollout.skip_rollout=True").find("responses that were kept"),
            std::string::npos);
  EXPECT_NE(refusal("skip.rollout.enable=True").find("responses that were kept"),
            std::string::npos);
  EXPECT_NE(refusal("actor_rollout_ref.ref.fsdp_config.qat.enable=True").find("quantised"),
            std::string::npos);
  EXPECT_NE(refusal("trainer.v1.sampler.custom_sampler.path=s.py").find("Python code"),
            std::string::npos);
  // Following a suggestion from another section would change the run.
  for (const char* asynchronous :
       {"rollout.total_rollout_steps=1", "async_training.staleness_threshold=0.1"}) {
    EXPECT_NE(refusal(asynchronous).find("concurrent generation"), std::string::npos)
        << refusal(asynchronous);
    EXPECT_EQ(refusal(asynchronous).find("did you mean"), std::string::npos) << asynchronous;
  }
  const std::string experts = "actor_rollout_ref.actor.megatron.override_transformer_config.moe_";
  for (const char* loss :
       {"aux_loss_coeff=0.001", "z_loss_coeff=0.001", "router_load_balancing_type=aux_loss"}) {
    EXPECT_NE(refusal(experts + loss).find("learns by the policy's loss alone"), std::string::npos)
        << refusal(experts + loss);
  }
  for (const char* none : {"aux_loss_coeff=0", "z_loss_coeff=0.0",
                           "router_load_balancing_type=none", "router_dtype=fp32"})
    EXPECT_EQ(refusal(experts + none), "") << none;
  EXPECT_NE(
      refusal("reward_model.reward_loop_module_path=m.py").find("Python code runs as a reward"),
      std::string::npos);
}

}  // namespace
}  // namespace rl
