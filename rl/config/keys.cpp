#include "rl/config/keys.h"

#include <algorithm>
#include <vector>

namespace rl {
namespace {

using enum KeyKind;
using enum KeySupport;

// Notes that many keys share.
constexpr std::string_view kLayout = "how weights and sequences are laid out over devices: every worker here holds the whole model";
constexpr std::string_view kMemory = "a memory setting: the result does not depend on it";
constexpr std::string_view kSpeed = "a speed setting: the result does not depend on it";
constexpr std::string_view kEngine = "an option of another inference engine";
constexpr std::string_view kProfiler = "profiling and tracing are not built yet";
constexpr std::string_view kFp32 = "everything is computed in fp32";
constexpr std::string_view kNoCode = "no code that comes with a model is ever run";
constexpr std::string_view kMoe = "mixtures of experts are not built yet";
constexpr std::string_view kQuantised = "quantised training and rollout are not built yet";
constexpr std::string_view kPython = "Python code runs as a reward only: reward.custom_reward_function.path";
constexpr std::string_view kTools = "tools and several turns are not built yet";
constexpr std::string_view kRouting = "the engine and the trainer compute the same bits, so that they choose the same experts";
constexpr std::string_view kSameLogprobs = "the engine and the trainer compute the same bits: every weight is 1, and no sample is rejected";
constexpr std::string_view kRewardModelPlace = "the reward model runs with the reward workers, on the policy's slots";
constexpr std::string_view kAsynchronous = "generation beside training, with older weights, is not built yet";
constexpr std::string_view kOwnProcesses = "of verl's own processes";
constexpr std::string_view kSft =
    "a key of verl's SFT trainer, which is not built yet: `train` takes data.*, actor_rollout_ref.*, algorithm.*, trainer.*";

constexpr KeyInfo kKeys[] = {
#include "rl/config/keys.inc"
};

// Sections end in '.'; the longest match wins.
constexpr KeyAlias kAliases[] = {
    {"trainer.max_steps", "trainer.total_training_steps"},
    {"num_train_epochs", "trainer.total_epochs"},
    {"gradient_checkpointing", "actor_rollout_ref.model.enable_gradient_checkpointing"},
    {"trainer.max_ckpt_to_keep", "trainer.max_actor_ckpt_to_keep"},
    {"actor_rollout_ref.actor.optim.clip_grad", "actor_rollout_ref.actor.grad_clip"},
    {"actor_rollout_ref.actor.optim.warmup_style", "actor_rollout_ref.actor.optim.lr_scheduler_type"},
    {"actor_rollout_ref.model.lora.alpha", "actor_rollout_ref.model.lora_alpha"},
    {"actor_rollout_ref.model.lora.dropout", "actor_rollout_ref.model.lora_dropout"},
    {"actor_rollout_ref.model.lora.rank", "actor_rollout_ref.model.lora_rank"},
    {"actor_rollout_ref.model.use_rmpad", "actor_rollout_ref.model.use_remove_padding"},
    {"critic.model.use_rmpad", "critic.model.use_remove_padding"},
    {"reward_model.model.use_rmpad", "reward_model.model.use_remove_padding"},
    {"critic.optim.clip_grad", "critic.grad_clip"},
    {"critic.optim.warmup_style", "critic.optim.lr_scheduler_type"},
    {"critic.model.fsdp_config.", "critic.fsdp."},
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

/// Rows in order of their keys, for binary search. Made once; the table itself stays grouped for readers.
const std::vector<const KeyInfo*>& sorted_rows() {
  static const std::vector<const KeyInfo*> rows = [] {
    std::vector<const KeyInfo*> sorted;
    for (const KeyInfo& row : kKeys) sorted.push_back(&row);
    std::sort(sorted.begin(), sorted.end(), [](const KeyInfo* a, const KeyInfo* b) { return a->key < b->key; });
    return sorted;
  }();
  return rows;
}

std::vector<const KeyInfo*>::const_iterator lower_bound(std::string_view key) {
  const auto& rows = sorted_rows();
  return std::lower_bound(rows.begin(), rows.end(), key, [](const KeyInfo* row, std::string_view k) { return row->key < k; });
}

const KeyInfo* find_exact(std::string_view key) {
  const auto row = lower_bound(key);
  return row != sorted_rows().end() && (*row)->key == key ? *row : nullptr;
}

}  // namespace

std::span<const KeyInfo> known_keys() {
  return kKeys;
}
std::span<const KeyAlias> key_aliases() {
  return kAliases;
}

const KeyInfo* find_key(std::string_view key) {
  if (const KeyInfo* row = find_exact(key)) return row;
  for (std::size_t dot = key.rfind('.'); dot != std::string_view::npos && dot > 0; dot = key.rfind('.', dot - 1)) {
    const KeyInfo* row = find_exact(key.substr(0, dot));
    if (row != nullptr && row->kind == KeyKind::kMap) return row;
  }
  return nullptr;
}

bool is_section(std::string_view key) {
  const std::string prefix = std::string(key) + ".";
  const auto row = lower_bound(prefix);
  return row != sorted_rows().end() && (*row)->key.starts_with(prefix);
}

std::string canonical_key(std::string_view key) {
  const KeyAlias* best = nullptr;
  for (const KeyAlias& alias : kAliases) {
    const bool section = alias.old_name.ends_with('.');
    const bool matches = section ? key.starts_with(alias.old_name) : key == alias.old_name;
    if (matches && (best == nullptr || alias.old_name.size() > best->old_name.size())) best = &alias;
  }
  if (best == nullptr) return std::string(key);
  return std::string(best->name) + std::string(key.substr(best->old_name.size()));
}

}  // namespace rl
