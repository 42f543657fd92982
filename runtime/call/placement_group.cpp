#include "runtime/call/placement_group.h"

#include "runtime/call/process.h"

namespace runtime {

Result<GroupState> PendingGroup::get() const {
  // A user should not wonder for minutes what a program waits for.
  if (!placed_->wait(deadline_after(kSilentWait))) explain_wait_();
  // The request always has an answer, at its own deadline at the latest.
  if (!placed_->wait(Deadline::max())) return cancelled("the runtime was stopped");
  if (!placed_->failure().ok()) return placed_->failure();
  return *state_;
}

}  // namespace runtime
