// ClusterApi: the cluster that a program is connected to, as it is now and as it changes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/api/connection.h"
#include "runtime/api/until.h"
#include "runtime/call/drain_hooks.h"
#include "runtime/call/watch.h"
#include "runtime/control/membership.h"

namespace runtime {

/// Runtime::cluster(). A value that borrows the Runtime. Errors: kDeadlineExceeded, and those of a
/// runtime that is not started.
class ClusterApi {
 public:
  explicit ClusterApi(const Connection& connection) : connection_(connection) {}

  /// Nodes, actors, placement groups, jobs.
  Result<ClusterState> state(Until until = std::chrono::seconds(30));
  /// The nodes, with resources, labels, and (NodeInfo::drain) which are about to leave.
  Result<std::vector<NodeInfo>> nodes(Until until = std::chrono::seconds(30));
  /// The node that this process is on.
  NodeId node_id() const;
  /// That this process's node is about to leave the cluster, and when; nothing while it is not. For
  /// methods that run long: on_drain() (runtime/call/drain_hooks.h) waits for them to end. Cost: a
  /// lock.
  std::optional<DrainNotice> drain_notice() const;
  /// Calls back for each node that the cluster has now. From then on, calls back when a node joins,
  /// is about to leave (with its deadline and the reason), has left, or is lost. Events come in the
  /// order in which they happened. A restart of the head loses none; of those that were away for
  /// long, the last 1000 departures are told.
  Watch watch_nodes(std::function<void(const NodeEvent&)> callback);

 private:
  const Connection& connection_;
};

}  // namespace runtime
