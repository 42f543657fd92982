#include "runtime/node/head_connection.h"

#include <utility>

#include "runtime/control/control_channel.h"

namespace runtime {

namespace {

constexpr auto kHeadJoinTimeout = std::chrono::milliseconds(10000);

}  // namespace

HeadConnection::HeadConnection(EventLoop& loop, HeadConnectionOptions options,
                               HeadLink::Callbacks callbacks)
    : loop_(loop),
      options_(std::move(options)),
      child_(options_.child ? std::make_unique<HeadChild>(loop, *options_.child, callbacks.lost)
                            : nullptr),
      link_(loop, endpoint_of(options_), options_.credentials, with_child(std::move(callbacks)),
            options_.link) {}

Endpoint HeadConnection::endpoint_of(const HeadConnectionOptions& options) {
  // A session's folder leaves room for such names.
  return options.child ? *Endpoint::unix_socket(options.child->socket.string())
                       : options.head.for_worker(head_target());
}

HeadLink::Callbacks HeadConnection::with_child(HeadLink::Callbacks callbacks) const {
  if (!child_) return callbacks;
  callbacks.head_trouble = [this] { return child_->trouble(); };
  callbacks.registered = [this] { child_->confirm(); };
  return callbacks;
}

Status HeadConnection::join() {
  struct Joining {
    explicit Joining(EventLoop& loop) : done(loop) {}
    Event done;
    Status status = deadline_exceeded("the head does not answer");
  };
  auto joining = std::make_shared<Joining>(loop_);
  const auto finish = [joining](const Status& status) {
    joining->status = status;
    joining->done.set();
  };
  loop_.post([this, finish] {
    if (child_) {
      if (Status status = child_->start(); !status.ok()) return finish(status);
    }
    link_.join(kHeadJoinTimeout, finish);
  });
  // What the head's process cannot do closes the link.
  loop_.run_until(joining->done, deadline_after(kHeadJoinTimeout + 2 * kControlGrace));
  return joining->status;
}

Status HeadConnection::keep_lease() {
  if (child_) return {};
  lease_ = std::make_unique<LeaseKeeper>(options_.head.for_worker(head_target()),
                                         options_.credentials, options_.link.heartbeat);
  return lease_->status();
}

void HeadConnection::end_child(std::function<void()> done) {
  if (!child_) return done();
  child_->end(std::move(done));
}

}  // namespace runtime
