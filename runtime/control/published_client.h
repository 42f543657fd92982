// PublishedClient: the published objects of the cluster.
#pragma once

#include "runtime/control/node_client.h"

namespace runtime {

/// Over a connection to a node, which outlives it.
class PublishedClient {
 public:
  template <class T>
  using Callback = NodeClient::Callback<T>;
  using Done = NodeClient::Done;

  explicit PublishedClient(NodeClient& node) : node_(node) {}

  /// Answers once the cluster keeps that version. kInvalidArgument: it is not larger than the
  /// latest; names both.
  void publish(control::Publish request, Deadline deadline, Done done);
  /// kNotFound: it is not there (now); kDeadlineExceeded: nor was it published in time;
  /// kObjectLost: the nodes that had it are gone.
  void find(control::FindPublished request, Deadline deadline, Callback<PublishedObject> done);
  void unpublish(control::Unpublish request, Deadline deadline, Done done);

 private:
  NodeClient& node_;
};

}  // namespace runtime
