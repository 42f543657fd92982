#include "runtime/api/cluster.h"

#include <utility>

#include "runtime/call/process.h"
#include "runtime/control/cluster_client.h"

namespace runtime {

Result<ClusterState> ClusterApi::state(Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<ClusterState>([&](NodeClient::Callback<ClusterState> done) {
    ClusterClient(connection_.process->node()).state(bounded(until.at()), std::move(done));
  });
}

Result<std::vector<NodeInfo>> ClusterApi::nodes(Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  auto list = connection_.process->ask<control::NodeList>(
      [&](NodeClient::Callback<control::NodeList> done) {
        ClusterClient(connection_.process->node())
            .watch_nodes(0, bounded(until.at()), std::move(done));
      });
  if (!list.ok()) return list.status();
  return std::move(list->nodes);
}

NodeId ClusterApi::node_id() const {
  return connection_.process ? connection_.process->node().node_id() : NodeId{};
}

std::optional<DrainNotice> ClusterApi::drain_notice() const {
  if (!connection_.require_started().ok()) return std::nullopt;
  return connection_.process->drain_notice();
}

Watch ClusterApi::watch_nodes(std::function<void(const NodeEvent&)> callback) {
  if (!connection_.require_started().ok()) return {};
  return Watch::on_nodes(connection_.process->queries(), std::move(callback));
}

}  // namespace runtime
