#include "rl/run/rl/role_starter.h"

#include <cstdint>
#include <future>
#include <optional>
#include <utility>

#include "rl/optim/learner.h"
#include "rl/run/memory_fit.h"
#include "rl/run/reward_model_path.h"
#include "rl/run/rl/credit_factory.h"
#include "rl/worker/toy_model.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

// Roles whose models share a slot of the policy.
std::int64_t models_of_slot(const TrainerOptions& options, const RunModels& models) {
  return 1 + (options.uses_critic() ? 1 : 0) + (options.uses_reference() ? 1 : 0) +
         static_cast<std::int64_t>(models.teachers.size()) +
         (reward_models(models.reward_config).empty() ? 0 : 1);
}

}  // namespace

RoleStarter::RoleStarter(RoleSpawner& spawner, const Config& config, const TrainerOptions& options,
                         const RunModels& models, const SlotOptions& slots)
    : spawner_(spawner), config_(config), options_(options), models_(models), slot_options_(slots) {
  slot_options_.models = models_of_slot(options, models);
}

SlotOptions RoleStarter::slot_options() const {
  SlotOptions options = slot_options_;
  if (options_.rollout_workers) {
    options.separate_nodes = options_.rollout_workers->nodes;
    options.separate_per_node = options_.rollout_workers->per_node;
  }
  return options;
}

SlotOptions RoleStarter::rollout_slot_options() const {
  return {.nodes = options_.rollout_workers->nodes,
          .per_node = options_.rollout_workers->per_node,
          .cpus_per_worker = slot_options_.cpus_per_worker,
          .device = slot_options_.device,
          .separate_nodes = slot_options_.nodes,
          .separate_per_node = slot_options_.per_node,
          .nodes_key = "rollout.nnodes",
          .models = 1,
          .rank_timeout = slot_options_.rank_timeout,
          .memory = rollout_memory_};
}

void RoleStarter::set_memory(std::span<const RoleMemory> roles) {
  const SlotOptions slots = slot_options();
  slot_options_.memory = slot_memory(roles, slots);
  rollout_memory_ = ahead_memory(roles, slots);
}

// The group that takes more of a node chooses first: what it leaves holds the other.
Status RoleStarter::reserve() {
  if (!options_.rollout_workers) return reserve_policy();
  const SlotMemory& policy = slot_options_.memory;
  const bool policy_first = policy.node_bytes + policy.leader_bytes >= rollout_memory_.node_bytes;
  const Status first = policy_first ? reserve_policy() : reserve_rollouts();
  if (!first.ok()) return first;
  return policy_first ? reserve_rollouts() : reserve_policy();
}

Status RoleStarter::reserve_policy() {
  const Result<WorkerSlots> slots = spawner_.reserve(slot_options());
  if (slots.ok()) slots_ = *slots;
  return slots.status();
}

Status RoleStarter::reserve_rollouts() {
  const Result<WorkerSlots> slots = spawner_.reserve(rollout_slot_options());
  if (!slots.ok()) return slots.status().with_context("workers that generate samples");
  rollout_slots_ = *slots;
  return {};
}

Status RoleStarter::start(Roles& roles, const std::string& rate_text) {
  if (const Status reserved = reserve(); !reserved.ok()) return reserved;
  roles.teachers = models_.teachers;
  std::future<Status> reward =  // where no thread can be made: after the others
      std::async(std::launch::async | std::launch::deferred,
                 [this, &roles] { return start_reward(roles); });
  Status status = start_policy(roles, rate_text);
  if (status.ok() && options_.rollout_workers) status = start_rollouts(roles);
  if (status.ok() && options_.uses_critic()) status = start_critic(roles);
  if (status.ok()) status = start_teachers(roles);
  const Status reward_status = reward.get();
  if (status.ok()) status = reward_status;
  if (!status.ok()) return status;
  Result<EmptyObjects> nothing = spawner_.put_nothing();
  if (nothing.ok()) roles.nothing = std::move(*nothing);
  return nothing.status();
}

WorkerSpec RoleStarter::spec(const std::string& role, const fs::path& model) const {
  return {.config = config_.serialize(),
          .model = model.string(),
          .model_name = model.string(),
          .adapter = {},
          .group = role + "-" + slots_.group.hex(),
          .rank = 0,
          .size = 1,
          .threads = 1,
          .run_folder = fs::absolute(options_.folder).string()};
}

WorkerSpec RoleStarter::policy_spec() const {
  WorkerSpec policy_spec = spec("policy", models_.policy);
  policy_spec.adapter = models_.adapter.value_or(fs::path()).string();
  // A hub's snapshot is found again by its name, anywhere.
  const Result<std::string> given = config_.get_string("actor_rollout_ref.model.path");
  std::error_code ignored;
  if (given.ok() && *given != kToyModelName && !fs::exists(*given, ignored))
    policy_spec.model_name = *given;
  return policy_spec;
}

Status RoleStarter::start_policy(Roles& roles, const std::string& rate_text) {
  const Result<WorkerSlots> slots = slots_.in_teams_of(config_, kActorRole);
  if (!slots.ok()) return slots.status();
  const Status started = spawner_.spawn(*slots, /*reserves=*/true, policy_spec(), roles.policy);
  if (!started.ok()) return started;
  LOG(info, "policy: {} worker(s) on {} node(s), {} thread(s) each; learning rate {}",
      slots_.size(), slots_.nodes, slots_.threads(), rate_text);
  return {};
}

Status RoleStarter::start_rollouts(Roles& roles) {
  const RolloutWorkersOptions& rollout = *options_.rollout_workers;
  WorkerSpec rollout_spec = policy_spec();
  rollout_spec.group = "rollout-" + rollout_slots_.group.hex();
  rollout_spec.generates_only = true;
  const Status started =
      spawner_.spawn(rollout_slots_, /*reserves=*/true, rollout_spec, roles.rollouts);
  if (!started.ok()) return started;
  LOG(info, "rollouts: {} worker(s) on {} node(s), {} thread(s) each; samples are {} old",
      rollout_slots_.size(), rollout_slots_.nodes, rollout_slots_.threads(),
      rollout.steps_ahead == 1 ? "one step" : std::to_string(rollout.steps_ahead) + " steps");
  return {};
}

Status RoleStarter::start_critic(Roles& roles) {
  const Result<WorkerSlots> slots = slots_.in_teams_of(config_, kCriticRole);
  if (!slots.ok()) return slots.status();
  return spawner_.spawn(*slots, /*reserves=*/false, spec("critic", models_.critic), roles.critic);
}

// Log-probabilities are of a teacher's own distribution, as verl's teachers give them, whatever the
// temperature that samples are generated at.
Status RoleStarter::start_teachers(Roles& roles) {
  if (roles.teachers.empty()) return {};
  nlohmann::ordered_json config = config_.to_json();
  config["actor_rollout_ref"]["rollout"]["temperature"] = 1.0;
  const std::string text = config_.with_tree(std::move(config)).serialize();
  for (Teacher& teacher : roles.teachers) {
    WorkerSpec teacher_spec = spec(teacher.role(), teacher.model);
    teacher_spec.config = text;
    const Status started = spawner_.spawn(slots_, /*reserves=*/false, teacher_spec, teacher.group);
    if (!started.ok()) return started;
  }
  return {};
}

Status RoleStarter::start_reward(Roles& roles) {
  WorkerSpec reward_spec = spec("reward", models_.policy);
  reward_spec.config = models_.reward_config.serialize();
  const WorkerSlots slots =
      reward_models(models_.reward_config).empty() ? slots_.without_models() : slots_;
  const Status started = spawner_.spawn(slots, /*reserves=*/false, reward_spec, roles.reward);
  if (!started.ok()) return started;
  const Result<bool> prepares = spawner_.prepares(roles.reward);
  if (!prepares.ok()) return prepares.status();
  roles.reward_prepares = *prepares;
  return {};
}

Status RoleStarter::start_reference(Roles& roles) {
  const bool warm = options_.warm_start.steps > 0;
  const fs::path warm_folder = options_.folder / kWarmStartFolder;
  const std::optional<fs::path>& adapter = models_.adapter;
  WorkerSpec reference_spec =
      spec("reference", warm && !adapter ? warm_folder / kModelFolder : models_.policy);
  if (adapter) reference_spec.adapter = (warm ? warm_folder / kAdapterFolder : *adapter).string();
  return spawner_.spawn(slots_, /*reserves=*/false, reference_spec, roles.reference);
}

}  // namespace rl
