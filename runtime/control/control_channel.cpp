#include "runtime/control/control_channel.h"

#include "runtime/control/control_codec.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"

namespace runtime {

namespace {
// A process whose socket broke, and which lives, has connected again by then.
constexpr std::chrono::milliseconds kBackWithin{500};
}  // namespace

void send_request(Channel& channel, const ControlRequest& request, ControlAnswerer answer) {
  Message message;
  message.kind = FrameKind::kControl;
  message.meta = encode(request);
  channel.request(std::move(message), deadline_after(request.timeout + kControlGrace),
                  [answer = std::move(answer)](Result<Message> reply) mutable {
                    if (reply.ok())
                      answer(decode_control_reply(reply->meta));
                    else
                      answer(reply.status());
                  });
}

ControlAnswerer answerer_for(const std::shared_ptr<Channel>& channel, const Message& request) {
  return [weak = std::weak_ptr<Channel>(channel), kind = reply_kind(request.kind),
          id = request.id](Result<ControlAnswer> answer) {
    std::shared_ptr<Channel> peer = weak.lock();
    if (!peer || peer->closed()) return;
    Message reply;
    reply.kind = kind;
    reply.id = id;
    reply.meta = encode(answer);
    if (Status status = peer->send(std::move(reply)); !status.ok()) {
      LOG(warn, "answering {}: {}", peer->describe_peer(), status.message());
    }
  };
}

WorkerId head_target() {
  WorkerId target;
  target.bytes.fill(0xff);
  return target;
}

void close_unless_back(EventLoop& loop, const std::shared_ptr<Channel>& channel) {
  channel->set_on_interrupt([&loop, weak = std::weak_ptr<Channel>(channel)] {
    auto interrupted = weak.lock();
    if (!interrupted || interrupted->interruption().code() == ErrorCode::kDeadlineExceeded) return;
    auto timer = std::make_shared<Timer>(loop.context(), kBackWithin);
    timer->async_wait([weak, timer](boost::system::error_code ec) {
      auto late = weak.lock();
      const Status why = late && !ec ? late->interruption() : Status();
      if (!why.ok()) late->close(unavailable(why.message()));
    });
  });
}

void send_event(Channel& channel, const ControlEvent& event) {
  Message message;
  message.kind = FrameKind::kControlEvent;
  message.meta = encode(event);
  Status status = channel.send(std::move(message), Flush::kSoon);
  if (!status.ok() && !channel.closed())
    LOG(warn, "event for {}: {}", channel.describe_peer(), status.message());
}

}  // namespace runtime
