#include "rl/config/keys.h"

#include "rl/config/key_notes.h"
#include "rl/config/key_table.h"

namespace rl {
namespace {

using enum KeyKind;
using enum KeySupport;
using namespace key_notes;

constexpr std::string_view kSft =
    "a key of verl's SFT trainer: `starling sft` takes it; `train` takes data.*, "
    "actor_rollout_ref.*, algorithm.*, trainer.*";

constexpr UsedKey kKeys[] = {
#include "rl/config/keys.inc"
};

constexpr UnusedKey kUnusedKeys[] = {
#include "rl/config/unused_keys.inc"
};

// Sections end in '.'; the longest match wins.
constexpr KeyAlias kAliases[] = {
    {"trainer.max_steps", "trainer.total_training_steps"},
    {"actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size",
     "actor_rollout_ref.actor.ulysses_sequence_parallel_size"},
    {"critic.fsdp.ulysses_sequence_parallel_size", "critic.ulysses_sequence_parallel_size"},
    {"num_train_epochs", "trainer.total_epochs"},
    {"trainer.val_generations_to_log_to_wandb", "trainer.log_val_generations"},
    {"data.curriculum.curriculum_class", "data.sampler.class_name"},
    {"data.curriculum.curriculum_class_path", "data.sampler.class_path"},
    {"algorithm.rollout_correction.bypass_old_logprob_for_rollout",
     "algorithm.rollout_correction.bypass_mode"},
    {"algorithm.rollout_correction.use_pure_rollout_correction",
     "algorithm.rollout_correction.use_policy_gradient"},
    {"distillation.teacher_model.", "distillation.teacher_models.teacher_model."},
    {"actor_rollout_ref.actor.compute_sum_pi_squared",
     "actor_rollout_ref.actor.calculate_sum_pi_squared"},
    {"actor_rollout_ref.rollout.multi_turn.max_turns",
     "actor_rollout_ref.rollout.multi_turn.max_assistant_turns"},
    {"gradient_checkpointing", "actor_rollout_ref.model.enable_gradient_checkpointing"},
    {"trainer.max_ckpt_to_keep", "trainer.max_actor_ckpt_to_keep"},
    {"actor_rollout_ref.actor.optim.clip_grad", "actor_rollout_ref.actor.grad_clip"},
    {"actor_rollout_ref.actor.optim.warmup_style",
     "actor_rollout_ref.actor.optim.lr_scheduler_type"},
    {"actor_rollout_ref.model.lora.adapter_path", "actor_rollout_ref.model.lora_adapter_path"},
    {"actor_rollout_ref.model.lora.exclude_modules", "actor_rollout_ref.model.exclude_modules"},
    {"actor_rollout_ref.model.lora.alpha", "actor_rollout_ref.model.lora_alpha"},
    {"actor_rollout_ref.model.lora.dropout", "actor_rollout_ref.model.lora_dropout"},
    {"actor_rollout_ref.model.lora.rank", "actor_rollout_ref.model.lora_rank"},
    {"actor_rollout_ref.model.use_rmpad", "actor_rollout_ref.model.use_remove_padding"},
    {"critic.model.use_rmpad", "critic.model.use_remove_padding"},
    {"reward_model.model.use_rmpad", "reward_model.model.use_remove_padding"},
    {"critic.optim.clip_grad", "critic.grad_clip"},
    {"critic.optim.warmup_style", "critic.optim.lr_scheduler_type"},
    {"critic.model.fsdp_config.", "critic.fsdp."},
    {"profile.steps", "global_profiler.steps"},
    {"trainer.profile_steps", "global_profiler.steps"},
    {"profile.options.save_path", "global_profiler.save_path"},
    {"actor_rollout_ref.actor.profile_ranks", "actor_rollout_ref.actor.profiler.ranks"},
    {"actor_rollout_ref.actor.profile_ranks_all", "actor_rollout_ref.actor.profiler.all_ranks"},
    {"actor_rollout_ref.ref.profile_ranks", "actor_rollout_ref.ref.profiler.ranks"},
    {"actor_rollout_ref.ref.profile_ranks_all", "actor_rollout_ref.ref.profiler.all_ranks"},
    {"critic.profile_ranks", "critic.profiler.ranks"},
    {"critic.profile_ranks_all", "critic.profiler.all_ranks"},
    {"custom_reward_function.overlong_buffer.", "reward.reward_kwargs.overlong_buffer_cfg."},
    {"custom_reward_function.", "reward.custom_reward_function."},
    {"sandbox_fusion.", "reward.sandbox_fusion."},
    {"reward_model.sandbox_fusion.", "reward.sandbox_fusion."},
    {"reward_model.sandbox_fusion_url", "reward.sandbox_fusion.url"},
    {"reward_model.reward_manager", "reward.reward_manager.name"},
    {"reward_model.reward_kwargs.", "reward.reward_kwargs."},
    {"reward_model.overlong_buffer.", "reward.reward_kwargs.overlong_buffer_cfg."},
    {"reward_model.num_workers", "reward.num_workers"},
    {"reward_model.model.path", "reward.reward_model.model_path"},
    {"reward_model.rollout.", "reward.reward_model.rollout."},
    {"reward_model.model_path", "reward.reward_model.model_path"},
    {"reward_model.inference.", "reward.reward_model.rollout."},
    {"reward_model.enable", "reward.reward_model.enable"},
    {"reward_model.enable_resource_pool", "reward.reward_model.enable_resource_pool"},
    {"reward_model.nnodes", "reward.reward_model.nnodes"},
    {"reward_model.n_gpus_per_node", "reward.reward_model.n_gpus_per_node"},
};

}  // namespace

const KeyTable& train_keys() {
  static const KeyTable table("train", {{kKeys, kUnusedKeys}}, kAliases);
  return table;
}

std::span<const KeyInfo> known_keys() { return train_keys().rows(); }
std::span<const KeyAlias> key_aliases() { return kAliases; }
const KeyInfo* find_key(std::string_view key) { return train_keys().find(key); }
std::string canonical_key(std::string_view key) { return train_keys().canonical(key); }

}  // namespace rl
