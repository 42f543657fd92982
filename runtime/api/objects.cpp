#include "runtime/api/objects.h"

#include <algorithm>

#include "runtime/call/group_failure.h"
#include "runtime/call/process.h"
#include "runtime/control/cluster_client.h"
#include "runtime/core/fork_guard.h"

namespace runtime {

Status ObjectApi::gather(const std::vector<ObjectRef<void>>& refs, Until until) {
  const auto failed = wait_for_all(runtime_detail::states_of(refs), until.at());
  if (failed) {
    Status status = get_value(refs[*failed], until.at());
    if (!status.ok()) return status.with_context("rank " + std::to_string(*failed));
  }
  for (std::size_t rank = 0; rank < refs.size(); ++rank) {
    if (Status status = get_value(refs[rank], until.at()); !status.ok())
      return status.with_context("rank " + std::to_string(rank));
  }
  return {};
}

std::vector<Status> ObjectApi::gather_each(const std::vector<ObjectRef<void>>& refs, Until until) {
  std::vector<Status> results;
  results.reserve(refs.size());
  for (const auto& ref : refs) results.push_back(get_value(ref, until.at()));
  return results;
}

std::optional<std::size_t> ObjectApi::wait_for_all(const std::vector<ObjectStatePtr>& objects,
                                                   Deadline deadline) {
  const auto missing = std::find(objects.begin(), objects.end(), nullptr);
  if (missing != objects.end()) return static_cast<std::size_t>(missing - objects.begin());
  if (connection_.process)
    connection_.process->wait(objects, objects.size(), deadline, OnFailure::kReturn);
  std::optional<std::size_t> unsettled;
  std::optional<std::size_t> failed;  // the one that may have made others fail
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (!objects[i]->is_settled())
      unsettled = unsettled ? unsettled : i;
    else if (!objects[i]->failure().ok() &&
             (!failed ||
              cause_rank(objects[i]->failure()) > cause_rank(objects[*failed]->failure())))
      failed = i;
  }
  return failed ? failed : unsettled;
}

ObjectRef<void> ObjectApi::when_all_of(const std::vector<ObjectStatePtr>& objects) {
  ObjectContextPtr context = object_context(connection_.process);
  if (connection_.is_forked())
    return ObjectRef<void>(ObjectState::failed(std::move(context), forked_status()));
  const auto missing = std::find(objects.begin(), objects.end(), nullptr);
  if (missing == objects.end())
    return ObjectRef<void>(completion_detail::when_all(std::move(context), objects));
  return ObjectRef<void>(ObjectState::failed(
      std::move(context), invalid_argument("rank " + std::to_string(missing - objects.begin()) +
                                           ": an ObjectRef that refers to nothing")));
}

Result<ObjectList> ObjectApi::list(Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<ObjectList>([&](NodeClient::Callback<ObjectList> done) {
    ClusterClient(connection_.process->node()).list_objects(bounded(until.at()), std::move(done));
  });
}

}  // namespace runtime
