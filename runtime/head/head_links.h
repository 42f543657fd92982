// HeadLinks: the head's way to the nodes.
#pragma once

#include "runtime/control/control.h"
#include "runtime/core/ids.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// How the head reaches its nodes. Answers come later, never from inside the call, and in the order
/// in which the node gave them relative to its own requests.
class HeadLinks {
 public:
  virtual ~HeadLinks() = default;
  virtual void request(NodeId node, ControlRequest request, ControlAnswerer answer) = 0;
  virtual void event(NodeId node, const ControlEvent& event) = 0;
  /// Runs `action` once all that was decided until now is recorded, after what was said before.
  virtual void when_recorded(UniqueFunction<void()> action) = 0;
  /// Whether requests reach it now. A member that is away comes back, or is lost when its lease
  /// ends.
  virtual bool is_connected(NodeId node) const = 0;
};

}  // namespace runtime
