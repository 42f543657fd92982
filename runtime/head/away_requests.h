// AwayRequests: requests to members that have not come back since the head was started.
#pragma once

#include <map>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/clock.h"

namespace runtime {

/// Whether a request that is made for a caller waits for its node. The others are the head's own,
/// which it makes again for a node that is back.
bool awaits_node(const ControlRequest::Body& body);

class AwayRequests {
 public:
  struct Request {
    ControlRequest request;
    ControlAnswerer answer;
  };

  /// Keeps the request until its timeout, from `now` on.
  void add(NodeId node, Deadline now, Request request);
  /// Takes out those of a node, in their order: it is back, or lost. What is left of their time is
  /// their timeout.
  std::vector<Request> take(NodeId node, Deadline now);
  /// Answers those whose time has passed: kUnavailable.
  void expire(Deadline now);
  /// When expire() next has work; Deadline::max(): never.
  Deadline earliest() const;

 private:
  struct Waiting {
    Deadline deadline;
    Request request;
  };
  std::map<NodeId, std::vector<Waiting>> waiting_;
};

}  // namespace runtime
