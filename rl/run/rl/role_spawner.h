// RoleSpawner: the requests to the cluster when a run starts: an interface, so that RoleStarter is
// tested with a fake.
#pragma once

#include "rl/actor/actors.h"
#include "rl/actor/worker_group.h"
#include "rl/run/rl/roles.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// Any thread; groups are left alone where they cannot be started.
class RoleSpawner {
 public:
  virtual ~RoleSpawner() = default;
  virtual runtime::Result<WorkerSlots> reserve(const SlotOptions& options) = 0;
  // As WorkerGroup::spawn().
  virtual runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                                WorkerGroup<PolicyActor>& group) = 0;
  virtual runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                                WorkerGroup<CriticActor>& group) = 0;
  virtual runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                                WorkerGroup<ReferenceActor>& group) = 0;
  virtual runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                                WorkerGroup<RewardActor>& group) = 0;
  /// Whether a reward that was started can begin while samples are generated.
  virtual runtime::Result<bool> prepares(const WorkerGroup<RewardActor>& reward) = 0;
  virtual runtime::Result<EmptyObjects> put_nothing() = 0;
};

/// Borrows the runtime.
class RuntimeSpawner : public RoleSpawner {
 public:
  explicit RuntimeSpawner(runtime::Runtime& runtime) : runtime_(runtime) {}

  runtime::Result<WorkerSlots> reserve(const SlotOptions& options) override {
    return reserve_slots(runtime_, options);
  }
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<PolicyActor>& group) override;
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<CriticActor>& group) override;
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<ReferenceActor>& group) override;
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<RewardActor>& group) override;
  runtime::Result<bool> prepares(const WorkerGroup<RewardActor>& reward) override {
    return runtime_.get(reward.leader().call(&RewardActor::prepares));
  }
  runtime::Result<EmptyObjects> put_nothing() override { return EmptyObjects::put(runtime_); }

 private:
  runtime::Runtime& runtime_;
};

}  // namespace rl
