#include "runtime/head/closed_nodes.h"

#include <algorithm>

namespace runtime {

namespace {

// How long a node that refused gets nothing new.
constexpr auto kRefusalPause = std::chrono::milliseconds(1000);

}  // namespace

void ClosedNodes::close(NodeId node) {
  context_.scheduler.set_open(node, false);
  closed_[node] = context_.now() + kRefusalPause;
}

bool ClosedNodes::tick(Deadline now) {
  bool opened = false;
  for (auto closed = closed_.begin(); closed != closed_.end();) {
    const bool is_over = closed->second <= now;
    if (is_over) context_.scheduler.set_open(closed->first, !for_good_);
    opened = opened || is_over;
    closed = is_over ? closed_.erase(closed) : std::next(closed);
  }
  return opened;
}

Deadline ClosedNodes::next_tick() const {
  Deadline next = Deadline::max();
  for (const auto& [node, until] : closed_) next = std::min(next, until);
  return next;
}

void ClosedNodes::close_all() {
  for_good_ = true;
  for (const auto& [node, info] : context_.tables.nodes().all())
    context_.scheduler.set_open(node, false);
}

}  // namespace runtime
