// RoleStarter: starts the workers of all roles of a run.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "rl/actor/worker_group.h"
#include "rl/config/config.h"
#include "rl/plan/memory_plan.h"
#include "rl/run/rl/role_spawner.h"
#include "rl/run/rl/roles.h"
#include "rl/run/rl/run_models.h"
#include "rl/run/rl/trainer_options.h"
#include "runtime/core/result.h"

namespace rl {

/// In a run's folder: what a warm start leaves for the reference.
inline constexpr const char* kWarmStartFolder = "warm_start";

/// Borrows all but the slots.
class RoleStarter {
 public:
  RoleStarter(RoleSpawner& spawner, const Config& config, const TrainerOptions& options,
              const RunModels& models, const SlotOptions& slots);

  /// What the policy's slots need, with those of rollout workers next to them.
  SlotOptions slot_options() const;

  /// What the run's processes will take, which is reserved with their slots. Before start().
  void set_memory(std::span<const RoleMemory> roles);

  /// Reserves slots, and starts all roles but the reference. Errors: those of reserve_slots() and
  /// WorkerGroup::spawn().
  runtime::Status start(Roles& roles, const std::string& rate_text);

  /// The reference is the policy as RL found it. That is the given model, with the given adapter if
  /// there is one, or what the warm start made of it.
  runtime::Status start_reference(Roles& roles);

  /// Unique to the run.
  std::string weights_name() const { return "weights-" + slots_.group.hex(); }

 private:
  WorkerSpec spec(const std::string& role, const std::filesystem::path& model) const;
  WorkerSpec policy_spec() const;
  SlotOptions rollout_slot_options() const;
  runtime::Status reserve();
  runtime::Status reserve_policy();
  runtime::Status reserve_rollouts();
  runtime::Status start_policy(Roles& roles, const std::string& rate_text);
  runtime::Status start_rollouts(Roles& roles);
  runtime::Status start_critic(Roles& roles);
  runtime::Status start_teachers(Roles& roles);
  runtime::Status start_reward(Roles& roles);

  RoleSpawner& spawner_;
  const Config& config_;
  const TrainerOptions& options_;
  const RunModels& models_;
  SlotOptions slot_options_;  // of the policy
  SlotMemory rollout_memory_;
  WorkerSlots slots_;
  WorkerSlots rollout_slots_;
};

}  // namespace rl
