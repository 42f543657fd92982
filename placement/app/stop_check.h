// The work that `starling stop` would end besides nodes.
#pragma once

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/process/session.h"
#include "runtime/transport/event_loop.h"

namespace placement {

/// Names the jobs that run in the cluster at `address`, or on `node` alone if that is one. With
/// `force` on stdout, as what is being ended; else on stderr with the cure, after a moment for
/// those that are just ending. Whether the stop may go on: not when the node is there and its head
/// does not say what runs. Errors: those of NodeClient::connect; then nothing was said.
runtime::Result<bool> may_end_jobs(runtime::EventLoop& loop, const runtime::ClusterAddress& address,
                                   runtime::NodeId node, bool force);

}  // namespace placement
