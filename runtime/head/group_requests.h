// GroupRequests: clients' requests to create, find, await and remove placement groups.
#pragma once

#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/head/group_manager.h"
#include "runtime/head/head_context.h"
#include "runtime/head/placement_queue.h"
#include "runtime/head/request_ledger.h"
#include "runtime/head/waiters.h"

namespace runtime {

class GroupRequests {
 public:
  GroupRequests(const HeadContext& context, RequestLedger& ledger, PlacementQueue& queue,
                GroupManager& groups)
      : context_(context), ledger_(ledger), queue_(queue), groups_(groups) {}

  void serve(const HeadCall& call, control::CreateGroup& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::RemoveGroup& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::QueryGroup& body, ControlAnswerer answer);

  /// It is placed, or (with the reason) gone for good.
  void decided(GroupId group, const Status& status);

  void tick(Deadline now);
  Deadline next_tick() const { return waiters_.earliest(); }

 private:
  /// Fills in its namespace. Errors: kInvalidArgument, kResourceExhausted (too many wait).
  Status check_new(const HeadCall& call, GroupSpec& spec) const;
  Status no_such_group(GroupId group) const;

  const HeadContext& context_;
  RequestLedger& ledger_;
  PlacementQueue& queue_;
  GroupManager& groups_;
  Waiters<GroupId, ControlAnswerer> waiters_;
};

}  // namespace runtime
