#include "rl/train/rollout_workers.h"

#include <string>

namespace rl {

using runtime::Result;

namespace {

constexpr const char* kNodes = "rollout.nnodes";
constexpr const char* kPerNode = "rollout.n_gpus_per_node";

}  // namespace

Result<std::optional<RolloutWorkersOptions>> RolloutWorkersOptions::from_config(const Config& config, std::int64_t policy_workers) {
  ConfigReader read(config);
  const bool shared = read.get_bool("actor_rollout_ref.hybrid_engine");
  const std::optional<std::int64_t> nodes = read.find_int(kNodes);
  const std::optional<std::int64_t> per_node = read.find_int(kPerNode);
  const bool filters = read.get_bool("algorithm.filter_groups.enable");
  if (!read.status().ok()) return read.status();
  if (shared) {
    for (const char* key : {kNodes, kPerNode}) {
      if (config.is_set(key)) return config.out_of_range(key, "left out unless actor_rollout_ref.hybrid_engine=false gives rollouts workers of their own");
    }
    return std::optional<RolloutWorkersOptions>();
  }
  const RolloutWorkersOptions options{.nodes = nodes.value_or(1), .per_node = per_node.value_or(1)};
  if (options.nodes < 1) return config.out_of_range(kNodes, "at least 1");
  if (options.per_node < 1) return config.out_of_range(kPerNode, "at least 1");
  if (options.size() > policy_workers) {
    return runtime::invalid_argument(std::string(kNodes) + " * " + kPerNode + ": " + std::to_string(options.size()) + " workers that draw samples for " + std::to_string(policy_workers) +
                                     " that train: those over would have nothing to do; use at most as many, or raise trainer.n_gpus_per_node or trainer.nnodes");
  }
  if (filters) return config.out_of_range("algorithm.filter_groups.enable", "false with actor_rollout_ref.hybrid_engine=false: rounds of generation cannot be foreseen a step ahead");
  return std::optional(options);
}

}  // namespace rl
