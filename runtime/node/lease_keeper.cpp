#include "runtime/node/lease_keeper.h"

#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/transport/blocking.h"
#include "runtime/transport/listener.h"

namespace runtime {

namespace {
// An answer that takes longer may be on a dead connection.
constexpr std::chrono::seconds kAnswerTime{3};
}  // namespace

LeaseKeeper::LeaseKeeper(Endpoint head, Credentials credentials, std::chrono::milliseconds interval)
    : head_(std::move(head)),
      credentials_(std::move(credentials)),
      interval_(interval),
      timer_(loop_.context()) {
  loop_.post([this] { connect(); });
}

LeaseKeeper::~LeaseKeeper() {
  on_loop(loop_, [this] {
    lifetime_.end();
    timer_.cancel();
    if (auto channel = std::exchange(channel_, nullptr))
      channel->close(cancelled("the node has left its cluster"));
    return true;
  });
}

void LeaseKeeper::connect() {
  ConnectOptions connecting;
  connecting.deadline = deadline_after(kAnswerTime);
  runtime::connect(loop_, head_, credentials_, connecting,
                   [this, alive = lifetime_.alive()](Result<std::shared_ptr<Channel>> channel) {
                     if (!*alive) {
                       if (channel.ok())
                         (*channel)->close(cancelled("the node has left its cluster"));
                       return;
                     }
                     if (!channel.ok()) return renew_later();
                     channel_ = std::move(*channel);
                     renew();
                   });
}

void LeaseKeeper::renew() {
  if (!channel_ || channel_->closed()) return connect();
  send_request(
      *channel_, ControlRequest{{}, kAnswerTime, control::Heartbeat{}},
      lifetime_.guard([this, asked = std::weak_ptr(channel_)](const Result<ControlAnswer>& answer) {
        if (asked.lock() != channel_) return;
        if (!answer.ok()) channel_->close(answer.status());
        renew_later();
      }));
}

void LeaseKeeper::renew_later() {
  timer_.expires_after(interval_);
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (!ec) renew();
  }));
}

}  // namespace runtime
