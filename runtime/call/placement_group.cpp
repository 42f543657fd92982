#include "runtime/call/placement_group.h"

#include "runtime/call/process.h"
#include "runtime/control/group_client.h"
#include "runtime/core/log.h"

namespace runtime {

Result<GroupState> PendingGroup::get() const {
  // A user should not wonder for minutes what a program waits for.
  if (!placed_->wait(deadline_after(kSilentWait))) explain_wait();
  // The request always has an answer, at its own deadline at the latest.
  if (!placed_->wait(Deadline::max())) return cancelled("the runtime was stopped");
  if (!placed_->failure().ok()) return placed_->failure();
  return *state_;
}

void PendingGroup::explain_wait() const {
  GroupClient(placed_->process()->node())
      .query(group_, "", "", /*wait=*/false, deadline_after(kSilentWait),
             [](Result<GroupState> waiting) {
               if (waiting.ok() && !waiting->pending_reason.empty())
                 LOG(warn, "the placement group has to wait: {}", waiting->pending_reason);
             });
}

}  // namespace runtime
