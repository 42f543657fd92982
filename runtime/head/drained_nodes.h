// DrainedNodes: the nodes that are about to leave, with their deadlines.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "runtime/head/head_context.h"

namespace runtime {

class DrainedNodes {
 public:
  explicit DrainedNodes(const HeadContext& context) : context_(context) {}

  void set(NodeId node, Deadline deadline) { deadlines_[node] = deadline; }
  void erase(NodeId node) { deadlines_.erase(node); }

  bool contains(NodeId node) const { return deadlines_.contains(node); }
  std::size_t size() const { return deadlines_.size(); }
  const std::map<NodeId, Deadline>& deadlines() const { return deadlines_; }

  // Of a node that is drained.
  Deadline deadline(NodeId node) const { return deadlines_.at(node); }
  std::chrono::milliseconds left(NodeId node) const;
  /// What an actor has that is to end there: less, so that it has saved its state before its node
  /// ends.
  std::chrono::milliseconds time_to_move(NodeId node) const;
  /// "node 7f3a0011 is drained (preemption)"
  std::string text(NodeId node) const;

 private:
  const HeadContext& context_;
  std::map<NodeId, Deadline> deadlines_;
};

}  // namespace runtime
