// TakeOverRounds: has the other nodes take over the objects that they refer to on a node which is
// drained.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

#include "runtime/head/head_context.h"

namespace runtime {

class TakeOverRounds {
 public:
  /// `on_end`: all nodes have answered the round of that drained node.
  TakeOverRounds(const HeadContext& context, std::function<void(NodeId)> on_end)
      : context_(context), on_end_(std::move(on_end)) {}

  /// Asks all other nodes; ends the round before.
  void begin(NodeId node, std::chrono::milliseconds time);
  /// The answers of its round count no more.
  void cancel(NodeId node);
  bool is_under_way(NodeId node) const;
  /// The number of objects that could not be taken over in the last round.
  std::uint64_t failed(NodeId node) const;
  /// The node has left.
  void forget(NodeId node) { last_.erase(node); }

 private:
  struct Round {
    std::uint64_t number = 0;
    std::size_t outstanding = 0;  // nodes that have not answered
    std::uint64_t failed = 0;
  };
  void on_answer(NodeId node, std::uint64_t number, std::uint64_t failed);

  const HeadContext& context_;
  const std::function<void(NodeId)> on_end_;
  std::map<NodeId, Round> last_;
  std::uint64_t rounds_ = 0;  // of all drains
};

}  // namespace runtime
