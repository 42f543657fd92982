// ClosedNodes: nodes that have refused a placement group, and get nothing new for a moment.
#pragma once

#include <map>

#include "runtime/head/head_context.h"

namespace runtime {

class ClosedNodes {
 public:
  explicit ClosedNodes(const HeadContext& context) : context_(context) {}

  void close(NodeId node);
  void forget(NodeId node) { closed_.erase(node); }
  /// Whether one is open again.
  bool tick(Deadline now);
  Deadline next_tick() const;
  /// The cluster ends: all are closed for good.
  void close_all();

 private:
  const HeadContext& context_;
  std::map<NodeId, Deadline> closed_;
  bool for_good_ = false;
};

}  // namespace runtime
