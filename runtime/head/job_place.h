// Jobs that reserve a place for themselves: a placement group in which the job's program runs.
#pragma once

#include "runtime/head/cluster_tables.h"

namespace runtime {

/// The job that the group is the place of; null: it is a group like others.
const JobRecord* job_in(const ClusterTables& tables, const GroupState& group);
/// Whether a job that waited elsewhere for its place has got it on that node.
bool has_place_on(const ClusterTables& tables, const JobInfo& job, GroupId place, NodeId node);

}  // namespace runtime
