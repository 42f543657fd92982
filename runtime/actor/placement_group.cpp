#include "runtime/actor/placement_group.h"

namespace runtime {

Result<GroupState> PendingGroup::get() const {
  // The request always has an answer, at its own deadline at the latest.
  if (!placed_->wait(Deadline::max())) return cancelled("the runtime was stopped");
  if (!placed_->failure().ok()) return placed_->failure();
  return *state_;
}

}  // namespace runtime
