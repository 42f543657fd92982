// Roles: the groups of workers of a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rl/actor/actors.h"
#include "rl/actor/worker_group.h"
#include "rl/run/rl/teachers.h"
#include "rl/run/step_profiler.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// A teacher and its workers.
struct Teacher {
  NamedTeacher named;
  std::filesystem::path model;
  WorkerGroup<ReferenceActor> group = {};

  /// The role's name in logs and profiles.
  std::string role() const { return named.rows.empty() ? "teacher" : "teacher_" + named.name; }
};

/// Empty objects, for methods that need none of what they take.
struct EmptyObjects {
  runtime::ObjectRef<std::vector<float>> logprobs;
  runtime::ObjectRef<TokenEstimates> estimates;
  runtime::ObjectRef<RolloutBatch> samples;

  static runtime::Result<EmptyObjects> put(runtime::Runtime& runtime);
};

/// Stays where it is made: calls refer to it.
struct Roles {
  Roles() = default;
  Roles(const Roles&) = delete;
  Roles& operator=(const Roles&) = delete;

  WorkerGroup<PolicyActor> policy;
  WorkerGroup<PolicyActor> rollouts;      // empty unless other workers than the policy's generate
  WorkerGroup<CriticActor> critic;        // empty unless the critic has its own model
  WorkerGroup<ReferenceActor> reference;  // empty unless the objective needs one
  std::vector<Teacher> teachers;          // empty unless the policy is distilled
  WorkerGroup<RewardActor> reward;
  bool reward_prepares = false;  // the reward can begin while samples are generated
  EmptyObjects nothing;

  std::vector<ProfiledGroup> profiled_groups() const;
};

}  // namespace rl
