#include "runtime/control/cluster_client.h"

#include <utility>

namespace runtime {

void ClusterClient::state(Deadline deadline, Callback<ClusterState> done) {
  node_.ask(control::QueryCluster{}, deadline, std::move(done));
}

void ClusterClient::change_token(std::string token, std::chrono::milliseconds grace,
                                 Deadline deadline, Done done) {
  node_.tell(control::ChangeToken{std::move(token), grace}, deadline, std::move(done));
}

void ClusterClient::demand(Deadline deadline, Callback<Demand> done) {
  node_.ask(control::QueryDemand{}, deadline, std::move(done));
}

void ClusterClient::watch_nodes(std::uint64_t version, Deadline deadline,
                                Callback<control::NodeList> done) {
  node_.ask(control::WatchNodes{version}, deadline, std::move(done));
}

void ClusterClient::drain_node(NodeId node, std::chrono::milliseconds time, std::string reason,
                               Deadline deadline, Done done) {
  node_.tell(control::DrainNode{node, time, std::move(reason)}, deadline, std::move(done));
}

void ClusterClient::drain_idle_node(NodeId node, std::chrono::milliseconds time, std::string reason,
                                    Deadline deadline, Done done) {
  node_.tell(control::DrainNode{node, time, std::move(reason), true}, deadline, std::move(done));
}

void ClusterClient::list_objects(Deadline deadline, Callback<ObjectList> done) {
  node_.ask_objects(control::ListObjects{}, deadline, std::move(done));
}

void ClusterClient::observe(ObserveControl request, Deadline deadline,
                            Callback<ObserveAnswer> done) {
  node_.ask<ObserveAnswer>(std::move(request), deadline, std::move(done));
}

void ClusterClient::read_log(std::string name, std::uint64_t file, std::uint64_t offset,
                             Deadline deadline, Callback<control::LogChunk> done) {
  node_.ask(control::ReadLog{std::move(name), offset, file}, deadline, std::move(done));
}

void ClusterClient::stop_node(Deadline deadline, Done done) {
  node_.tell(control::StopNode{}, deadline, std::move(done));
}

}  // namespace runtime
