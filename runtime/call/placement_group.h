// PendingGroup: a placement group that was asked for.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "runtime/call/object_state.h"
#include "runtime/control/membership.h"

namespace runtime {

/// What PlacementGroupApi::create() returns: many can be under way at once. A value; dropping it
/// changes nothing.
class PendingGroup {
 public:
  /// `explain_wait` says in the log what the group waits for, once the cluster knows.
  PendingGroup(GroupId group, ObjectStatePtr placed, std::shared_ptr<GroupState> state,
               std::function<void()> explain_wait)
      : group_(group),
        placed_(std::move(placed)),
        state_(std::move(state)),
        explain_wait_(std::move(explain_wait)) {}

  /// Known at once: actors can be spawned into its bundles, and wait for it.
  GroupId id() const { return group_; }
  bool is_ready() const { return placed_->is_settled(); }
  /// Waits for it. Errors: those of PlacementGroupApi::create().
  Result<GroupState> get() const;

 private:
  GroupId group_;
  ObjectStatePtr placed_;
  std::shared_ptr<GroupState> state_;  // set when it is placed
  std::function<void()> explain_wait_;
};

}  // namespace runtime
