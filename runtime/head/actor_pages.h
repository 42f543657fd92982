// Lists of actors for people, a page at a time.
#pragma once

#include "runtime/control/observe.h"
#include "runtime/core/result.h"
#include "runtime/head/cluster_tables.h"

namespace runtime {

/// The actors that all filters ask for, in the order of their ids.
/// Errors: kInvalidArgument, naming the key or the value, and what there is.
Result<ActorPage> actor_page(const ClusterTables& tables, const control::ListActors& asked);

}  // namespace runtime
