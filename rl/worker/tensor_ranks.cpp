#include "rl/worker/tensor_ranks.h"

#include "rl/model/tensor_cuts.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/zero_level.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

bool is_megatron(const Config& config, const std::string& role) {
  if (role == kStageRole) return true;
  return config.find_string(role + ".strategy").value_or(std::nullopt) == "megatron";
}

// The key that says how many there are.
std::string key_in_use(const Config& config, const std::string& role) {
  const std::string own = tensor_ranks_key(role);
  const auto* value = config.find(own);
  const bool counts = value != nullptr && value->is_number() && is_megatron(config, role);
  return counts ? own : kTensorRanksKey;
}

std::string adapter_key(const std::string& role) {
  return role == kStageRole ? "model.lora_rank" : "actor_rollout_ref.model.lora_rank";
}

}  // namespace

std::string tensor_ranks_key(const std::string& role) {
  return role == kStageRole ? "engine.tensor_model_parallel_size"
                            : role + ".megatron.tensor_model_parallel_size";
}

Result<std::int64_t> tensor_ranks_from_config(const Config& config, const std::string& role) {
  const std::string key = key_in_use(config, role);
  const auto* value = config.find(key);
  if (value == nullptr || !value->is_number()) return 1;
  const Result<std::int64_t> ranks = config.get_int(key);
  if (!ranks.ok() || *ranks == 1) return ranks;
  if (*ranks < 1) return config.out_of_range(key, "at least 1");
  const std::string optimizer = optim_section(role) + "optimizer";
  if (config.find_string(optimizer).value_or(std::nullopt) == "Muon")
    return config.out_of_range(key, "1 with " + optimizer + "=Muon, which works on whole matrices");
  if (role != kCriticRole && config.find_int(adapter_key(role)).value_or(std::nullopt) > 0)
    return config.out_of_range(key, "1 with " + adapter_key(role) + " above 0");
  const Result<std::optional<std::string>> device = training_device(config);
  if (!device.ok()) return device.status();
  if (*device) return config.out_of_range(key, "1 with trainer.device=" + **device);
  return ranks;
}

std::string teams_text(const Config& config, const std::string& role, std::int64_t workers) {
  const std::int64_t ranks = tensor_ranks_from_config(config, role).value_or(1);
  if (ranks == 1) return {};
  const std::int64_t teams = workers / ranks;
  return (role == kStageRole ? "" : role + ": ") + std::to_string(teams) +
         (teams == 1 ? " team of " : " teams of ") + std::to_string(ranks) +
         " workers that share each pass";
}

std::vector<std::string> unused_strategy_keys(const Config& config, const std::string& role) {
  const std::string own = tensor_ranks_key(role);
  const auto* value = config.find(own);
  if (value == nullptr || !value->is_number() || is_megatron(config, role) || *value == 1)
    return {};
  return {own + " has no effect without " + role + ".strategy=megatron"};
}

Status check_tensor_ranks(const Config& config, const std::string& role, const ModelConfig& model,
                          std::int64_t workers) {
  const Result<std::int64_t> ranks = tensor_ranks_from_config(config, role);
  if (!ranks.ok()) return ranks.status();
  const std::string key = key_in_use(config, role);
  if (workers % *ranks != 0) {
    return config.out_of_range(
        key, "a divisor of the number of workers, which is " + std::to_string(workers));
  }
  return check_tensor_ranks(model, static_cast<int>(*ranks)).with_context(key);
}

}  // namespace rl
