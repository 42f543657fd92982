#include "rl/config/idle_keys.h"

#include <array>
#include <string_view>

#include "rl/config/judge.h"

namespace rl {
namespace {

// A part of a run: the keys that configure it, and the one that switches it on, which is among them
// or not.
struct Part {
  std::string_view keys;  // one, or a section when it ends in '.'
  std::string_view switched_by;
  std::string_view on;  // its value: `true`, a text, or "" for any
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
    Part{"reward.reward_kwargs.overlong_buffer_cfg.",
         "reward.reward_kwargs.overlong_buffer_cfg.enable", "true"},
    Part{"reward.sandbox_fusion.", "reward.sandbox_fusion.url", ""},
    Part{"sample_store.", "sample_store.enable", "true"},
    Part{"trainer.early_stop.", "trainer.early_stop.metric", ""},
    Part{"trainer.gradient_topk_ratio", "trainer.gradient_compression", "topk"},
    Part{"trainer.resume_from_path", "trainer.resume_mode", "resume_path"},
};

bool is_on(const Config& config, const Part& part) {
  const nlohmann::ordered_json* value = config.find(part.switched_by);
  if (value == nullptr) return false;
  return part.on.empty()     ? !is_empty_value(*value)
         : part.on == "true" ? *value == true
                             : *value == part.on;
}

bool belongs(std::string_view key, const Part& part) {
  return key != part.switched_by &&
         (part.keys.ends_with('.') ? key.starts_with(part.keys) : key == part.keys);
}

bool is_text(const Config& config, std::string_view key, std::string_view text) {
  const nlohmann::ordered_json* value = config.find(key);
  return value != nullptr && *value == text;
}

bool is_true(const Config& config, std::string_view key) {
  const nlohmann::ordered_json* value = config.find(key);
  return value != nullptr && *value == true;
}

// What else does not do what verl's user may count on.
void add_differences(const Config& config, const KeyTable& table, std::vector<std::string>& notes) {
  if (table.command() != "train") return;
  const nlohmann::ordered_json* warmup = config.find("trainer.critic_warmup");
  if (warmup != nullptr && warmup->is_number() && *warmup > 0 &&
      !is_text(config, "algorithm.adv_estimator", "gae")) {
    notes.emplace_back(
        "without effect: trainer.critic_warmup (there is a critic with algorithm.adv_estimator=gae "
        "only; verl's trainer would hold the policy back)");
  }
  const std::string correction = "algorithm.rollout_correction.",
                    buffer = "reward.reward_kwargs.overlong_buffer_cfg.enable";
  const bool reinforces = is_text(config, correction + "loss_type", "reinforce") ||
                          is_true(config, correction + "use_policy_gradient");
  if (config.is_set(correction + "rollout_is") &&
      !(is_true(config, correction + "bypass_mode") && reinforces)) {
    notes.push_back("without effect: " + correction +
                    "rollout_is (samples are weighted with bypass_mode=true and "
                    "loss_type=reinforce only; in fp32 on a CPU the weights are 1)");
  }
  if (is_true(config, buffer) && !is_text(config, "reward.reward_manager.name", "dapo")) {
    notes.push_back(
        buffer +
        ": long responses lose score whichever reward manager is named; verl's dapo alone does so");
  }
}

}  // namespace

std::vector<std::string> idle_key_notes(const Config& config, const KeyTable& table,
                                        const std::vector<std::string>& set_keys) {
  std::vector<std::string> notes;
  for (const Part& part : kParts) {
    if (table.find(part.switched_by) == nullptr || is_on(config, part))
      continue;  // another command's; on
    std::string idle;
    for (const std::string& key : set_keys) {
      if (belongs(key, part) && !is_empty_value(*config.find(key)))
        idle += (idle.empty() ? "" : ", ") + key;
    }
    if (idle.empty()) continue;
    notes.push_back("without effect: " + idle + " (" + std::string(part.switched_by) + " is not " +
                    (part.on.empty() ? "set" : std::string(part.on)) + ")");
  }
  add_differences(config, table, notes);
  return notes;
}

}  // namespace rl
