#include "rl/run/rl/rollout_workers.h"

#include <string>

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr const char* kModeKey = "trainer.v1.trainer_mode";
constexpr const char* kHybrid = "actor_rollout_ref.hybrid_engine";
constexpr const char* kSeparateWarmupKey = "trainer.v1.separate_async.num_warmup_batches";
constexpr const char* kSync = "trainer.v1.separate_async.parameter_sync_step";
constexpr const char* kThresholdKey = "trainer.v1.sampler.max_off_policy_threshold";

// Two ways to ask for them, each with its own keys for how many there are.
struct Naming {
  const char* nodes;
  const char* per_node;
};
constexpr Naming kOneStepOff{"rollout.nnodes", "rollout.n_gpus_per_node"};
constexpr Naming kSeparate{"actor_rollout_ref.rollout.nnodes",
                           "actor_rollout_ref.rollout.n_gpus_per_node"};

// verl's trainer_separate_async: train_batch_size prompts go into parameter_sync_step updates
// between two versions of the weights, which is one step here.
Result<std::int64_t> read_steps_ahead(const Config& config) {
  ConfigReader read(config);
  const std::int64_t warmup = read.get_int(kSeparateWarmupKey);
  const std::int64_t sync = read.get_int(kSync);
  const std::int64_t batch = read.get_int("data.train_batch_size");
  const std::int64_t mini_batch = read.get_int("actor_rollout_ref.actor.ppo_mini_batch_size");
  const std::optional<std::int64_t> threshold = read.find_int(kThresholdKey);
  if (!read.status().ok()) return read.status();
  if (warmup < 1)
    return config.out_of_range(kSeparateWarmupKey, "at least 1: whole batches are generated ahead");
  if (sync * mini_batch != batch) {
    return runtime::invalid_argument("data.train_batch_size must be " + std::string(kSync) +
                                     " * actor_rollout_ref.actor.ppo_mini_batch_size with " +
                                     kModeKey + "=separate_async, but " + std::to_string(batch) +
                                     " is not " + std::to_string(sync) + " * " +
                                     std::to_string(mini_batch) +
                                     ": between two versions of the weights lie that many updates");
  }
  if (threshold && *threshold <= warmup) {
    return config.out_of_range(
        kThresholdKey, "above " + std::string(kSeparateWarmupKey) + " (" + std::to_string(warmup) +
                           "), since every sample is that many updates old, or null");
  }
  return warmup;
}

}  // namespace

Result<std::optional<RolloutWorkersOptions>> RolloutWorkersOptions::from_config(
    const Config& config, std::int64_t policy_workers) {
  ConfigReader read(config);
  const bool separate = read.get_string(kModeKey) == "separate_async";
  const bool shared = read.get_bool(kHybrid) && !separate;
  const Naming keys = separate ? kSeparate : kOneStepOff;
  const std::int64_t separate_nodes = read.get_int(kSeparate.nodes);
  const std::optional<std::int64_t> nodes = separate ? separate_nodes : read.find_int(keys.nodes);
  const std::optional<std::int64_t> per_node = read.find_int(keys.per_node);
  const bool filters = read.get_bool("algorithm.filter_groups.enable");
  if (!read.status().ok()) return read.status();
  if (!separate && separate_nodes != 0)
    return config.out_of_range(
        kSeparate.nodes,
        "0 unless trainer.v1.trainer_mode=separate_async starts separate rollout workers");
  if (shared || separate) {
    for (const char* key : {kOneStepOff.nodes, kOneStepOff.per_node}) {
      if (config.is_set(key))
        return config.out_of_range(key,
                                   "left out unless actor_rollout_ref.hybrid_engine=false gives "
                                   "separate rollout workers");
    }
  }
  if (shared) return std::optional<RolloutWorkersOptions>();
  RolloutWorkersOptions options{.nodes = nodes.value_or(1), .per_node = per_node.value_or(1)};
  if (options.nodes < 1)
    return config.out_of_range(
        keys.nodes,
        separate ? "at least 1 with trainer.v1.trainer_mode=separate_async" : "at least 1");
  if (options.size() > policy_workers) {
    return runtime::invalid_argument(
        std::string(keys.nodes) + " * " + keys.per_node + ": " + std::to_string(options.size()) +
        " rollout workers for " + std::to_string(policy_workers) +
        " that train: those over would have nothing to do; use at most as many, or raise "
        "trainer.n_gpus_per_node or trainer.nnodes");
  }
  if (filters) {
    return config.out_of_range("algorithm.filter_groups.enable",
                               "false with " +
                                   std::string(separate ? "trainer.v1.trainer_mode=separate_async"
                                                        : "actor_rollout_ref.hybrid_engine=false") +
                                   ": rounds of generation cannot be foreseen a step ahead");
  }
  if (separate) {
    const Result<std::int64_t> ahead = read_steps_ahead(config);
    if (!ahead.ok()) return ahead.status();
    options.steps_ahead = *ahead;
  }
  return std::optional(options);
}

}  // namespace rl
