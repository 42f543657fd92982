#include "rl/config/idle_keys.h"

#include <array>
#include <string_view>

#include "rl/config/judge.h"

namespace rl {
namespace {

// A part of a run: the keys that configure it, and the one that switches it on, which is among them or not.
struct Part {
  std::string_view keys;  // one, or a section when it ends in '.'
  std::string_view switched_by;
  std::string_view on;  // its value, or "" for any
};

constexpr std::array kParts{
    Part{"actor_rollout_ref.actor.kl_loss_coef", "actor_rollout_ref.actor.use_kl_loss", "true"},
    Part{"actor_rollout_ref.actor.kl_loss_type", "actor_rollout_ref.actor.use_kl_loss", "true"},
    Part{"algorithm.filter_groups.", "algorithm.filter_groups.enable", "true"},
    Part{"algorithm.kl_ctrl.", "algorithm.use_kl_in_reward", "true"},
    Part{"algorithm.pf_ppo.", "algorithm.use_pf_ppo", "true"},
    Part{"distillation.", "distillation.enabled", "true"},
    Part{"distillation.", "distillation.teacher.path", ""},  // of `starling sft`
    Part{"reward.http.", "reward.http.url", ""},
    Part{"reward.reward_kwargs.overlong_buffer_cfg.", "reward.reward_kwargs.overlong_buffer_cfg.enable", "true"},
    Part{"reward.sandbox_fusion.", "reward.sandbox_fusion.url", ""},
    Part{"sample_store.", "sample_store.enable", "true"},
    Part{"trainer.early_stop.", "trainer.early_stop.metric", ""},
};

bool is_on(const Config& config, const Part& part) {
  const nlohmann::ordered_json* value = config.find(part.switched_by);
  if (value == nullptr) return false;
  return part.on.empty() ? !is_empty_value(*value) : *value == (part.on == "true");
}

bool belongs(std::string_view key, const Part& part) {
  return key != part.switched_by && (part.keys.ends_with('.') ? key.starts_with(part.keys) : key == part.keys);
}

}  // namespace

std::vector<std::string> idle_key_notes(const Config& config, const KeyTable& table, const std::vector<std::string>& set_keys) {
  std::vector<std::string> notes;
  for (const Part& part : kParts) {
    if (table.find(part.switched_by) == nullptr || is_on(config, part)) continue;  // another command's; on
    std::string idle;
    for (const std::string& key : set_keys) {
      if (belongs(key, part)) idle += (idle.empty() ? "" : ", ") + key;
    }
    if (idle.empty()) continue;
    notes.push_back("without effect: " + idle + " (" + std::string(part.switched_by) + " is not " + (part.on.empty() ? "set" : std::string(part.on)) + ")");
  }
  return notes;
}

}  // namespace rl
