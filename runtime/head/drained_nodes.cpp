#include "runtime/head/drained_nodes.h"

#include <algorithm>

#include "runtime/head/head_words.h"

namespace runtime {

namespace {

constexpr std::chrono::milliseconds kMoveMarginMax{2000};

}  // namespace

std::chrono::milliseconds DrainedNodes::left(NodeId node) const {
  return head_words::until(context_.now(), deadline(node));
}

std::chrono::milliseconds DrainedNodes::time_to_move(NodeId node) const {
  const auto time = left(node);
  return std::max(std::chrono::milliseconds(1), time - std::min(time / 4, kMoveMarginMax));
}

std::string DrainedNodes::text(NodeId node) const {
  return "node " + node.short_hex() + " is drained (" +
         context_.tables.nodes().find(node)->drain->reason + ")";
}

}  // namespace runtime
