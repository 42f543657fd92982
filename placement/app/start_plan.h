// The decisions of `starling start` before anything runs.
#pragma once

#include <optional>

#include "placement/app/cli_start.h"
#include "placement/app/cluster_file.h"
#include "runtime/core/result.h"
#include "runtime/node/node.h"
#include "runtime/process/session.h"

namespace placement {

struct StartPlan {
  runtime::NodeOptions node;
  std::chrono::milliseconds drain_time{0};  // that SIGTERM gives; 0: none
  runtime::ClusterAddress
      head;  // of another machine's node; empty address: the head is next to this one
  std::optional<ClusterFile> earlier;  // the cluster that is gone on with
};

/// Errors: kInvalidArgument naming the option; kNotFound and kUnavailable as find_cluster().
runtime::Result<StartPlan> make_plan(const StartOptions& options);

}  // namespace placement
