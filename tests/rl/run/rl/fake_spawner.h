// A cluster that notes which workers a run asks for, and starts none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rl/run/rl/role_spawner.h"
#include "runtime/core/result.h"

namespace rl {

/// Notes what is started, and starts nothing. The reward comes from its own thread.
class FakeSpawner final : public RoleSpawner {
 public:
  struct Spawned {
    std::string actors;
    WorkerSlots slots;
    bool reserves;
    WorkerSpec spec;
  };

  runtime::Result<WorkerSlots> reserve(const SlotOptions& options) override {
    reserved.push_back(options);
    if (const runtime::Status failure = failure_of(options.nodes_key); !failure.ok())
      return failure;
    // Of the first reservation 1111..., of the second 2222...
    const auto digit = static_cast<char>('0' + reserved.size());
    return WorkerSlots{.group = *runtime::GroupId::from_hex(std::string(32, digit)),
                       .nodes = options.nodes,
                       .per_node = options.per_node,
                       .cpus = 3.0,
                       .device = options.device,
                       .models = options.models};
  }
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<PolicyActor>&) override {
    return note({"policy", slots, reserves, spec});
  }
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<CriticActor>&) override {
    return note({"critic", slots, reserves, spec});
  }
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<ReferenceActor>&) override {
    return note({"reference", slots, reserves, spec});
  }
  runtime::Status spawn(const WorkerSlots& slots, bool reserves, const WorkerSpec& spec,
                        WorkerGroup<RewardActor>&) override {
    return note({"reward", slots, reserves, spec});
  }
  runtime::Result<bool> prepares(const WorkerGroup<RewardActor>&) override { return can_prepare; }
  runtime::Result<EmptyObjects> put_nothing() override {
    ++nothings;
    if (const runtime::Status failure = failure_of("nothing"); !failure.ok()) return failure;
    return EmptyObjects{};
  }

  /// By the group's name, without what makes it unique.
  const Spawned& of(const std::string& role) const {
    for (const Spawned& one : spawned) {
      if (one.spec.group.starts_with(role + "-")) return one;
    }
    ADD_FAILURE() << "there is no " << role;
    static const Spawned none{};
    return none;
  }
  std::vector<std::string> groups() const {
    std::vector<std::string> names;
    for (const Spawned& one : spawned) names.push_back(one.spec.group.substr(0, 12));
    std::sort(names.begin(), names.end());
    return names;
  }

  std::map<std::string, runtime::Status> fails;  // by group's name up to the '-', key or "nothing"
  runtime::Result<bool> can_prepare = false;
  int nothings = 0;
  std::vector<SlotOptions> reserved;
  std::vector<Spawned> spawned;

 private:
  runtime::Status note(Spawned one) {
    const std::lock_guard lock(mutex_);
    const std::string name = one.spec.group.substr(0, one.spec.group.find('-'));
    spawned.push_back(std::move(one));
    return failure_of(name);
  }
  runtime::Status failure_of(const std::string& what) const {
    const auto failure = fails.find(what);
    return failure == fails.end() ? runtime::Status() : failure->second;
  }

  std::mutex mutex_;
};

}  // namespace rl
