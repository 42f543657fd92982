// The actors and jobs of a node, as a drain sees them.
#pragma once

#include <string>

#include "runtime/head/cluster_tables.h"

namespace runtime {

/// Whether neither an actor nor a job is there.
bool is_empty(const ClusterTables& tables, NodeId node);
/// "2 actors (...), 1 job"; empty: nothing that runs.
std::string what_keeps(const ClusterTables& tables, NodeId node);

}  // namespace runtime
