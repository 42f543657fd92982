#include "runtime/api/placement_groups.h"

#include <memory>
#include <utility>

#include "runtime/call/process.h"
#include "runtime/control/group_client.h"
#include "runtime/core/log.h"

namespace runtime {

PendingGroup PlacementGroupApi::create(GroupSpec spec, Until until) {
  if (spec.group.is_none()) spec.group = GroupId::random();
  auto state = std::make_shared<GroupState>();
  Status status = connection_.require_started();
  if (!status.ok())
    return {spec.group,
            ObjectState::failed(object_context(connection_.process), std::move(status)),
            state,
            {}};
  auto placed = std::make_shared<ObjectState>(object_context(connection_.process));
  auto explain_wait = [process = connection_.process, group = spec.group] {
    GroupClient(process->node())
        .query(group, "", "", /*wait=*/false, deadline_after(kSilentWait),
               [](Result<GroupState> waiting) {
                 if (waiting.ok() && !waiting->pending_reason.empty())
                   LOG(warn, "the placement group has to wait: {}", waiting->pending_reason);
               });
  };
  PendingGroup pending(spec.group, placed, state, std::move(explain_wait));
  GroupClient(connection_.process->node())
      .create(std::move(spec), bounded(until.at()), [placed, state](Result<GroupState> answer) {
        if (!answer.ok()) return placed->fail(answer.status());
        *state = *std::move(answer);
        placed->fulfil({});
      });
  return pending;
}

Result<GroupState> PlacementGroupApi::find(const std::string& name, const std::string& name_space,
                                           Until until) {
  return query({}, name, name_space, false, until);
}

Result<GroupState> PlacementGroupApi::wait(GroupId group, Until until) {
  if (group.is_none()) return invalid_argument("wait for a placement group: the id is none");
  return query(group, "", "", true, until);
}

ObjectRef<void> PlacementGroupApi::remove(GroupId group, Until until) {
  if (Status status = connection_.require_started(); !status.ok())
    return ObjectRef<void>(
        ObjectState::failed(object_context(connection_.process), std::move(status)));
  auto removed = std::make_shared<ObjectState>(object_context(connection_.process));
  GroupClient(connection_.process->node())
      .remove(group, bounded(until.at()), [removed](Status status) {
        if (status.ok())
          removed->fulfil({});
        else
          removed->fail(std::move(status));
      });
  return ObjectRef<void>(removed);
}

Result<GroupState> PlacementGroupApi::query(GroupId group, const std::string& name,
                                            const std::string& name_space, bool wait, Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<GroupState>([&](NodeClient::Callback<GroupState> done) {
    GroupClient(connection_.process->node())
        .query(group, name, name_space, wait, bounded(until.at()), std::move(done));
  });
}

}  // namespace runtime
