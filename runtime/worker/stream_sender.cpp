#include "runtime/worker/stream_sender.h"

#include <algorithm>
#include <atomic>

#include "runtime/call/call_wire.h"
#include "runtime/call/caller_context.h"
#include "runtime/transport/block_until.h"
#include "runtime/worker/held_results.h"

namespace runtime {

namespace {

/// What a stream's value lends is released under its own number; calls' sequences stay far
/// below.
std::uint64_t next_lend_id() {
  static std::atomic<std::uint64_t> last{std::uint64_t{1} << 63};
  return last.fetch_add(1) + 1;
}

}  // namespace

StreamSender::StreamSender(const Shared& shared, std::shared_ptr<Channel> channel, ActorId actor,
                           std::uint64_t sequence, std::uint32_t window, CallContext context)
    : shared_(shared),
      channel_(std::move(channel)),
      actor_(actor),
      sequence_(sequence),
      window_(window),
      context_(std::move(context)),
      event_(shared_.loop),
      on_stop_(context_.stop_token(), Wake{&event_}) {}

Status StreamSender::wait_for_room(bool* consumer_waits) {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      event_.reset();  // before looking: what is told from here on wakes
      if (Status status = context_.status(); !status.ok()) return status;
      if (channel_->closed()) return cancelled("the caller is gone");
      if (sent_ - taken_ < window_) {
        *consumer_waits = sent_++ == taken_;
        return {};
      }
    }
    if (block_until(shared_.loop, event_, context_.deadline())) continue;
    if (shared_.shut_down) return cancelled("the process ends");
    return deadline_exceeded("the consumer of the stream did not take its values in time");
  }
}

Status StreamSender::write(Encoder& encoder) {
  bool consumer_waits = false;
  if (Status status = wait_for_room(&consumer_waits); !status.ok()) return status;
  Result<ObjectValue> value =
      shared_.objects.store(encoder, room_deadline(context_.deadline()), context_.stop_token());
  if (Status status = context_.status(); !status.ok()) return status;
  if (!value.ok()) return value.status();
  while (ObjectStatePtr ref = first_unsettled(value->refs)) {
    if (!ref->wait(context_.deadline()))
      return deadline_exceeded("an object in a value of the stream was not there in time");
  }
  const std::uint64_t lend_id = value->refers() ? next_lend_id() : 0;
  Message message;
  message.kind = FrameKind::kCancel;
  Result<Buffer> meta = encode_stream_item(actor_, sequence_, lend_id, *value);
  if (!meta.ok()) return meta.status();
  message.meta = *std::move(meta);
  message.payload = Payload(value->bytes);
  if (lend_id != 0 && !shared_.held.hold(*channel_, actor_, lend_id, *std::move(value)))
    return cancelled("the caller is gone");
  // A consumer that has nothing wants this at once; else it may as well travel with the next.
  Status sent = channel_->send(std::move(message), consumer_waits ? Flush::kNow : Flush::kSoon);
  if (!sent.ok() && channel_->closed()) return cancelled("the caller is gone");
  return sent;
}

void StreamSender::on_taken(std::uint64_t count) {
  std::lock_guard lock(mutex_);
  taken_ = std::max(taken_, std::min(count, sent_));
  event_.set();
}

}  // namespace runtime
