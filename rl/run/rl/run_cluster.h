// RunCluster: what a run asks of its cluster, so that RlRun is tested with fakes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/role_spawner.h"
#include "rl/run/rl/roles.h"
#include "rl/run/rl/warm_start.h"
#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace rl {

/// The calls to all roles of a run; none is null.
struct RoleCalls {
  std::unique_ptr<GenerateCalls> generate;
  std::unique_ptr<PartialCalls> partial;
  std::unique_ptr<AheadCalls> ahead;
  std::unique_ptr<BatchCalls> batches;
  std::unique_ptr<ScoreCalls> score;
  std::unique_ptr<ReferenceCalls> reference;
  std::vector<std::unique_ptr<ReferenceCalls>> teachers;  // in the order of Roles::teachers
  std::unique_ptr<EstimateCalls> estimate;
  std::unique_ptr<UpdateCalls> update;
  std::unique_ptr<StateCalls> state;
  std::unique_ptr<WarmStartCalls> warm_start;
};

/// The cluster of a run. The run borrows the spawner, and calls the functions while it starts.
struct RunCluster {
  RoleSpawner& spawner;
  std::function<runtime::Result<std::vector<runtime::NodeInfo>>()> nodes;
  /// Calls to roles that are started; the reference may be started later. They borrow the roles.
  /// A warm start saves the policy into the folder.
  std::function<RoleCalls(const Roles& roles, const std::filesystem::path& warm_start_folder)>
      calls;
};

}  // namespace rl
