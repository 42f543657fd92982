// GroupClient: placement groups.
#pragma once

#include <string>

#include "runtime/control/node_client.h"

namespace runtime {

/// Over a connection to a node, which outlives it.
class GroupClient {
 public:
  template <class T>
  using Callback = NodeClient::Callback<T>;
  using Done = NodeClient::Done;

  explicit GroupClient(NodeClient& node) : node_(node) {}

  /// Answers once all bundles are reserved. kResourceExhausted at the deadline says what is
  /// missing.
  void create(GroupSpec spec, Deadline deadline, Callback<GroupState> done);
  void remove(GroupId group, Deadline deadline, Done done);
  /// By id or name; waits until it is placed if asked to.
  void query(GroupId group, std::string name, std::string name_space, bool wait, Deadline deadline,
             Callback<GroupState> done);

 private:
  NodeClient& node_;
};

}  // namespace runtime
