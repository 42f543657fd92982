#include "rl/run/rl/role_spawner.h"

#include <utility>

namespace rl {
namespace {

using runtime::Status;

template <class T>
Status spawn_into(runtime::Runtime& runtime, const WorkerSlots& slots, bool reserves,
                  const WorkerSpec& spec, WorkerGroup<T>& group) {
  auto started = WorkerGroup<T>::spawn(runtime, slots, reserves, spec);
  if (started.ok()) group = std::move(*started);
  return started.status();
}

}  // namespace

Status RuntimeSpawner::spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                             WorkerGroup<PolicyActor>& group) {
  return spawn_into(runtime_, slots, reserves, spec, group);
}

Status RuntimeSpawner::spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                             WorkerGroup<CriticActor>& group) {
  return spawn_into(runtime_, slots, reserves, spec, group);
}

Status RuntimeSpawner::spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                             WorkerGroup<ReferenceActor>& group) {
  return spawn_into(runtime_, slots, reserves, spec, group);
}

Status RuntimeSpawner::spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                             WorkerGroup<RewardActor>& group) {
  return spawn_into(runtime_, slots, reserves, spec, group);
}

}  // namespace rl
