// The cluster that a command joins, or starts for itself, and what it says of it.
#pragma once

#include <string>

#include "runtime/control/cluster_view.h"
#include "runtime/core/result.h"

namespace rl {

/// Of a command line's --address and --private. Where it is its own cluster, STARLING_ADDRESS
/// of this process says so to the Runtime. Errors: those of view_cluster().
runtime::Result<runtime::ClusterView> choose_cluster(const std::string& address, bool is_private);

/// "joins the cluster at 127.0.0.1:6400 (7f3a0011, since 2026-01-31T12:00:00Z) of 2 nodes:", a line
/// for each node, and how to have another cluster. Or that one is started for as long as the
/// command runs.
std::string cluster_text(const runtime::ClusterView& view);

}  // namespace rl
