// WorkerSlots: the bundles in which the workers of a run are placed, with their CPUs and devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "rl/config/config.h"
#include "runtime/runtime.h"

namespace rl {

inline constexpr const char* kRankTimeoutKey = "trainer.rank_timeout";
inline constexpr std::chrono::seconds kRankTimeout{60};  // its default

/// Slots for workers: `nodes` bundles of a placement group, each on its own node, `per_node`
/// slots of `cpus` each. With CUDA a bundle a slot, so that what shares the slot shares its GPU.
/// Roles that share the slots (colocated) take turns, so that only one of them needs to reserve the
/// CPUs.
struct WorkerSlots {
  runtime::GroupId group;
  std::int64_t nodes = 1;
  std::int64_t per_node = 1;
  double cpus = 1.0;        // of one slot
  std::string device = {};  // where workers compute, see find_device()
  // Roles whose models share a slot's GPU. 0: the workers in question load none.
  std::int64_t models = 1;
  std::chrono::milliseconds rank_timeout = kRankTimeout;  // see watch_group()
  std::int64_t team = 1;  // ranks that share passes, which are placed next to each other

  std::int64_t size() const { return nodes * per_node; }
  bool has_gpus() const { return device.starts_with("cuda"); }
  /// A permutation of 0 to size() - 1. `team` divides size().
  std::int64_t slot_of(std::int64_t rank) const {
    const std::int64_t teams = size() / team;  // of which TrainingRanks numbers the ranks
    return rank % teams * team + rank / teams;
  }
  std::uint32_t bundle_of(std::int64_t rank) const {
    const std::int64_t slot = slot_of(rank);
    return static_cast<std::uint32_t>(has_gpus() ? slot : slot / per_node);
  }
  /// What one role takes of a slot's GPU, so that all fit.
  double gpu_share() const;
  WorkerSlots without_models() const {
    WorkerSlots slots = *this;
    slots.models = 0;
    return slots;
  }
  /// With the teams that a role's keys ask for. Errors: those of check_teams().
  runtime::Result<WorkerSlots> in_teams_of(const Config& config, const std::string& role) const;
  std::int32_t threads() const { return cpus >= 2.0 ? static_cast<std::int32_t>(cpus) : 1; }
};

/// Host memory that workers take at their peaks.
struct SlotMemory {
  std::int64_t node_bytes = 0;    // of all workers of a node together; 0: not known
  std::int64_t leader_bytes = 0;  // more where rank 0 is
  bool operator==(const SlotMemory&) const = default;
};

/// How many workers where; read from `trainer.nnodes`, `trainer.n_gpus_per_node`,
/// `trainer.cpus_per_worker`, `trainer.device` and kRankTimeoutKey.
struct SlotOptions {
  std::int64_t nodes = 1;
  std::int64_t per_node = 1;   // workers on each
  double cpus_per_worker = 0;  // 0: the CPUs of a node shared evenly
  // See find_device(). With CUDA each worker has its own GPU, which all roles of its slot share.
  std::string device = {};
  // Workers with their own slots in the same run. Where there are too few nodes for both, a node's
  // CPUs are shared evenly with them.
  std::int64_t separate_nodes = 0;
  std::int64_t separate_per_node = 0;
  std::string nodes_key = "trainer.nnodes";               // what sets nodes, for messages
  std::int64_t models = 1;                                // see WorkerSlots
  std::chrono::milliseconds rank_timeout = kRankTimeout;  // see watch_group()
  SlotMemory memory = {};                                 // reserved with the CPUs

  bool on_device() const { return !device.empty() && device != "cpu"; }

  static runtime::Result<SlotOptions> from_config(const Config& config);
};

/// Reserves the slots that plan_slots() makes; waits up to a minute for what other jobs hold.
/// kResourceExhausted: the cluster has too few nodes, CPUs or memory; the message says what is
/// missing and how to get it.
runtime::Result<WorkerSlots> reserve_slots(runtime::Runtime& runtime, const SlotOptions& options);

/// What workers are started with, that libraries read before any code of ours runs.
std::map<std::string, std::string> worker_environment(const WorkerSlots& slots);

}  // namespace rl
