// PlacementGroupApi: reservations of resources, all or none, to put actors in.
#pragma once

#include <string>

#include "runtime/api/connection.h"
#include "runtime/api/until.h"
#include "runtime/call/object_ref.h"
#include "runtime/call/placement_group.h"
#include "runtime/control/membership.h"

namespace runtime {

/// Runtime::groups(). A value that borrows the Runtime. Errors: also those of a runtime that is not
/// started.
class PlacementGroupApi {
 public:
  explicit PlacementGroupApi(const Connection& connection) : connection_(connection) {}

  /// Asks for bundles to put actors in (ActorOptions::bundle); docs/guide/placement.md. Does not
  /// block: many can be under way at once, and PendingGroup::get() waits for one. The group ends
  /// with the job, unless it is detached. When one of its nodes is lost, it gives everything back
  /// and is placed again as a whole. Its actors restart there, as their max_restarts allow (each
  /// uses up one, unless the node was drained), and the others die. Errors, told by get():
  /// kResourceExhausted at the deadline, with what is missing and the nearest node.
  /// kInvalidArgument: an amount that cannot be meant, a name that is taken.
  PendingGroup create(GroupSpec spec, Until until = std::chrono::minutes(1));
  /// The group of that name; an empty namespace is the job's. Errors: kNotFound, with names that
  /// are like it.
  Result<GroupState> find(const std::string& name, const std::string& name_space = {},
                          Until until = std::chrono::seconds(30));
  /// Waits until it is placed, the first time or again. Errors: kNotFound, kDeadlineExceeded with
  /// what it waits for, kCancelled (it was removed).
  Result<GroupState> wait(GroupId group, Until until = std::chrono::minutes(1));
  /// Ends the actors in it; what they use is free once they have ended. Does not block: the result
  /// settles when it is removed, or (kNotFound) was not there.
  ObjectRef<void> remove(GroupId group, Until until = std::chrono::seconds(10));

 private:
  Result<GroupState> query(GroupId group, const std::string& name, const std::string& name_space,
                           bool wait, Until until);

  const Connection& connection_;
};

}  // namespace runtime
