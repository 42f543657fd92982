// ClusterClient: queries of a cluster's state, and changes to its nodes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/control/node_client.h"

namespace runtime {

/// Over a connection to a node, which outlives it.
class ClusterClient {
 public:
  template <class T>
  using Callback = NodeClient::Callback<T>;
  using Done = NodeClient::Done;

  explicit ClusterClient(NodeClient& node) : node_(node) {}

  void state(Deadline deadline, Callback<ClusterState> done);
  /// From now on callers prove that token; the present one counts for `grace` still. Errors:
  /// kInvalidArgument, kUnavailable (control::ChangeToken).
  void change_token(std::string token, std::chrono::milliseconds grace, Deadline deadline,
                    Done done);
  /// Asks what waits for a place, and what the nodes are used for.
  void demand(Deadline deadline, Callback<Demand> done);
  /// Answers with the cluster's nodes as soon as their version is another than `version`.
  /// kDeadlineExceeded: nothing happened.
  void watch_nodes(std::uint64_t version, Deadline deadline, Callback<control::NodeList> done);
  /// Has the node leave within that time, with what it has moved to others. Answers once that is
  /// recorded. Errors: kNotFound, kInvalidArgument (the head's).
  void drain_node(NodeId node, std::chrono::milliseconds time, std::string reason,
                  Deadline deadline, Done done);
  /// As drain_node(), if the node is idle; else kResourceExhausted, naming what runs there.
  void drain_idle_node(NodeId node, std::chrono::milliseconds time, std::string reason,
                       Deadline deadline, Done done);
  /// Lists the objects of the whole cluster.
  void list_objects(Deadline deadline, Callback<ObjectList> done);
  /// Asks the node (or, by some requests, the head) what it sees.
  void observe(ObserveControl request, Deadline deadline, Callback<ObserveAnswer> done);
  /// A piece of the log of a node's worker, job or (empty name) of the node itself: `name` is a
  /// file of its logs folder. `file` and `offset` are what the piece before said, at first 0.
  void read_log(std::string name, std::uint64_t file, std::uint64_t offset, Deadline deadline,
                Callback<control::LogChunk> done);
  /// Ends the node; a node with the head ends all nodes of the cluster.
  void stop_node(Deadline deadline, Done done);

 private:
  NodeClient& node_;
};

}  // namespace runtime
