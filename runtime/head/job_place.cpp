#include "runtime/head/job_place.h"

namespace runtime {

const JobRecord* job_in(const ClusterTables& tables, const GroupState& group) {
  const JobRecord* job = tables.jobs().find(group.job);
  return job && job->info.place == group.spec.group ? job : nullptr;
}

bool has_place_on(const ClusterTables& tables, const JobInfo& job, GroupId place, NodeId node) {
  const GroupState* group =
      place.is_none() || place != job.place ? nullptr : tables.groups().find(place);
  return group && group->job == job.job && group->placed && group->nodes.front() == node &&
         job.pid == 0;
}

}  // namespace runtime
