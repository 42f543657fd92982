// NodeProvider: the interface that makes machines and takes them away again. Local processes and a
// user's command implement it; Slurm and Kubernetes fit it too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "placement/autoscaler/config.h"
#include "runtime/core/result.h"

namespace placement {

/// A node that is to run `starling start` so that it joins the cluster with these resources and
/// labels.
struct NodeRequest {
  std::string id;
  NodeType type;
  Capacity capacity = Capacity::kOnDemand;
  runtime::Labels labels;  // all of them, with the ones by which the autoscaler knows it
};

/// Lives on the event loop; each callback runs there once, never from inside the call. Nodes are
/// named by ids that the autoscaler makes up, one for each node for all time.
class NodeProvider {
 public:
  using Done = std::function<void(runtime::Status)>;
  using Listed = std::function<void(runtime::Result<std::vector<std::string>>)>;

  virtual ~NodeProvider() = default;

  /// Answered once the node is on its way; it may take its time to join. Asked for an id that it
  /// has, it makes no second one: after a crash it is not known whether it was asked. Errors:
  /// kResourceExhausted: it has no such nodes now, and has made none. Others: whatever there is of
  /// the node is to be removed.
  virtual void add(const NodeRequest& request, Done done) = 0;
  /// Ends the node, whatever has become of it. One that is not there is no error.
  virtual void remove(const std::string& id, Done done) = 0;
  /// The nodes of this cluster that there are, joined or not. kUnimplemented: it cannot say.
  virtual void list(Listed done) = 0;
  /// How a person removes a node where remove() cannot; empty: nothing to be said.
  virtual std::string removal_by_hand(const std::string& id) const = 0;
  /// Ends what is under way, without an answer: the cluster stops, and its nodes are to be removed
  /// next.
  virtual void abandon() = 0;
  /// True: a node that has joined ends with its cluster, and nothing is left of it. False: it has
  /// to be removed.
  virtual bool ends_with_cluster() const = 0;
};

/// What every provider has to know to start a node.
struct NodeStart {
  std::string program = {};  // starling
  std::string address = {};  // HOST:PORT of the head
  std::string cluster = {};  // id
  std::string token_file = {};
};

/// The arguments of `starling` that start such a node, "start" first.
std::vector<std::string> start_arguments(const NodeStart& start, const NodeRequest& request);

}  // namespace placement
