// LeaseKeeper: renews a node's lease from a thread and over its own connection, so that a node
// that is busy is not taken for dead.
#pragma once

#include <chrono>
#include <memory>

#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"

namespace runtime {

/// From its construction to its end. A head that is away is connected to again; whether the node is
/// still a member is not for this to know (HeadLink).
class LeaseKeeper {
 public:
  LeaseKeeper(Endpoint head, Credentials credentials, std::chrono::milliseconds interval);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;
  ~LeaseKeeper();

  /// kResourceExhausted when it has no thread: then nothing is renewed.
  const Status& status() const { return loop_.status(); }

 private:
  void connect();
  void renew();
  void renew_later();

  const Endpoint head_;
  const Credentials credentials_;
  const std::chrono::milliseconds interval_;
  EventLoop loop_;
  std::shared_ptr<Channel> channel_;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace runtime
