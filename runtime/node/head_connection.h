// HeadConnection: a node's link to the head, its lease, and the head's process where that runs next
// to this node.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "runtime/control/control.h"
#include "runtime/node/head_child.h"
#include "runtime/node/head_link.h"
#include "runtime/node/lease_keeper.h"
#include "runtime/transport/handshake.h"

namespace runtime {

struct HeadConnectionOptions {
  Endpoint head;  // HOST:PORT of the node next to the head; not of that node itself
  std::optional<HeadChildOptions> child;  // of that node: the head's process
  Credentials credentials;
  HeadLinkOptions link;
};

/// Call it on the event loop, except where a method says otherwise.
class HeadConnection {
 public:
  /// `callbacks.lost` also hears when the head's process could not be started at all.
  HeadConnection(EventLoop& loop, HeadConnectionOptions options, HeadLink::Callbacks callbacks);
  HeadConnection(const HeadConnection&) = delete;
  HeadConnection& operator=(const HeadConnection&) = delete;

  /// Starts the head's process, if it is to run here, and joins the cluster. Blocks;
  /// not from the loop. Errors: as ChildProcess::start and HeadLink::join.
  Status join();
  /// After join(), on the same thread. Errors: kResourceExhausted (no thread).
  Status keep_lease();
  /// Call it on the thread that called keep_lease().
  void drop_lease() { lease_.reset(); }

  void request(ControlRequest request, ControlAnswerer answer,
               HeadLink::Urgency urgency = HeadLink::Urgency::kWaits) {
    link_.request(std::move(request), std::move(answer), urgency);
  }
  /// Not while the head is away: then it is dropped.
  void event(const ControlEvent& event) { link_.event(event); }
  bool is_up() const { return link_.is_up(); }
  std::uint64_t reconnects() const { return link_.reconnects(); }
  /// Hands on a connection that came in for the head. Errors: kUnavailable.
  Status attach(const Inbound& inbound, FileDescriptor& socket) {
    return link_.attach(inbound, socket);
  }

  /// Ends everything outstanding with kUnavailable. No callback runs after it.
  void close(const Status& reason) { link_.close(reason); }
  /// Ends the head's process in order, if it runs here; `done` when it is gone.
  void end_child(std::function<void()> done);

 private:
  static Endpoint endpoint_of(const HeadConnectionOptions& options);
  HeadLink::Callbacks with_child(HeadLink::Callbacks callbacks) const;

  EventLoop& loop_;
  const HeadConnectionOptions options_;
  std::unique_ptr<HeadChild> child_;
  HeadLink link_;  // ends first
  std::unique_ptr<LeaseKeeper> lease_;
};

}  // namespace runtime
