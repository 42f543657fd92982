// Channel's part about outliving a socket.
#include "runtime/transport/channel_lasting.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/log.h"
#include "runtime/transport/socket_stream.h"

namespace runtime {

namespace {

Message number_frame(FrameKind kind, std::uint64_t number) {
  Message message;
  message.kind = kind;
  message.id = number;
  return message;
}

}  // namespace

void Channel::make_lasting(std::uint64_t session, std::function<void()> on_interrupt) {
  CHECK(!lasting_);
  CHECK(!is_unix_);  // there a lost socket is a lost peer
  lasting_ = std::make_unique<Lasting>(loop_, session, std::move(on_interrupt));
}

bool Channel::is_interrupted() const {
  std::lock_guard lock(mutex_);
  return lasting_ && lasting_->interrupted;
}

void Channel::set_on_interrupt(std::function<void()> on_interrupt) {
  std::lock_guard lock(mutex_);
  if (lasting_) lasting_->watcher = std::move(on_interrupt);
}

// With mutex_ held: a frame that is to be sent is kept. Whether it may leave now.
bool Channel::keep(const Message& message) {
  if (!lasting_) return true;
  if (message.kind != FrameKind::kConfirm && message.kind != FrameKind::kGoodbye)
    lasting_->keep(message);
  return !lasting_->interrupted;
}

// On the loop: the frame counts. Whether it is for the handlers.
bool Channel::count_received(const Message& message) {
  if (!lasting_) return true;
  if (message.kind == FrameKind::kConfirm) {
    on_confirmed(message.id);
    return false;
  }
  if (message.kind == FrameKind::kGoodbye) {
    close(unavailable(describe_peer() + ": closed the connection"));
    return false;
  }
  Lasting& lasting = *lasting_;
  ++lasting.received;
  lasting.untold_bytes += FrameWriter::wire_bytes(message);
  if (lasting.received - lasting.told >= kConfirmFrames || lasting.untold_bytes >= kConfirmBytes) {
    lasting.told = lasting.received;
    lasting.untold_bytes = 0;
    (void)send(number_frame(FrameKind::kConfirm, lasting.received),
               Flush::kSoon);  // not sent: then the next Hello says it
  }
  return true;
}

void Channel::on_confirmed(std::uint64_t through) {
  std::vector<Message> spent;
  bool honest = false;
  {
    std::lock_guard lock(mutex_);
    honest = lasting_->confirm(through, spent);
    note_queued();
    if (!draining_.empty()) check_drained();
  }
  if (!honest) close(invalid_argument(describe_peer() + ": confirms frames that it cannot have"));
}

// On the loop. Whether the connection may go on without this socket; else it ends for that reason.
bool Channel::interrupt(const Status& why, std::uint64_t epoch) {
  std::function<void()> reconnect, watcher;
  {
    std::lock_guard lock(mutex_);
    if (closed_ || !lasting_ || lasting_->epoch != epoch || lasting_->interrupted)
      return lasting_ && !closed_;
    lasting_->why = why;
    reconnect = lasting_->on_interrupt;
    watcher = lasting_->watcher;
  }
  (void)detach();
  LOG(debug, "{}: interrupted: {}", describe_peer(), why.message());
  if (reconnect) reconnect();
  if (watcher) watcher();
  return true;
}

Status Channel::interruption() const {
  std::lock_guard lock(mutex_);
  return lasting_ && lasting_->interrupted ? lasting_->why : Status();
}

Channel::Detached Channel::detach() {
  std::unique_lock lock(mutex_);
  CHECK(lasting_ != nullptr);
  Lasting& lasting = *lasting_;
  const bool first = !std::exchange(lasting.interrupted, true);
  ++lasting.epoch;
  // A thread inside of sendmsg() does not block there, and sees that it is to end.
  while (flushing_) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  const Detached detached{lasting.received, lasting.epoch};
  FrameWriter unsent;  // all of it is kept
  std::swap(unsent, writer_);
  unsent_ = 0;
  stream_->abandon();
  blocked_ = false;
  note_queued();
  const bool ended = closed_;
  lock.unlock();
  close_socket();
  waiting_readable_ = false;
  reader_ = FrameReader(options_.meta_bytes_max, options_.payload_bytes_max);
  lasting.told = lasting.received;
  lasting.untold_bytes = 0;
  if (!first || ended) return detached;
  lasting.give_up.expires_after(options_.interruption_max);
  // Keeps the channel alive, as waiting for its socket does.
  lasting.give_up.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
    // It may have come back, and broken again, since this was due.
    if (ec || !self->is_interrupted() || steady_now() < self->lasting_->give_up.expiry()) return;
    std::string why;
    {
      std::lock_guard held(self->mutex_);
      why = self->lasting_->why.ok() ? self->describe_peer() + ": connected again and went away"
                                     : self->lasting_->why.message();
    }
    self->close(unavailable(why + ", and the connection did not come back within " +
                            std::to_string(self->options_.interruption_max.count()) + " ms"));
  });
  return detached;
}

bool Channel::resume(Socket socket, std::unique_ptr<SocketStream> stream,
                     std::uint64_t peer_received, const Detached& detached) {
  std::vector<Message> spent;
  bool honest = false;
  {
    std::unique_lock lock(mutex_);
    if (closed_ || !lasting_ || !lasting_->interrupted || lasting_->epoch != detached.epoch)
      return false;
    honest = lasting_->confirm(peer_received, spent);
    if (honest) {
      socket_ = std::move(socket);
      stream_ = std::move(stream);
      close_in_child(socket_.native_handle());
      lasting_->interrupted = false;
      for (const Message& message : lasting_->kept)
        writer_.append({message.kind, message.id, message.meta, message.payload, {}});
      note_queued();
      if (!draining_.empty()) check_drained();
    }
  }
  if (!honest) {
    close(invalid_argument(describe_peer() +
                           ": has frames of this session that were never sent, or has lost some"));
    return false;
  }
  lasting_->give_up.cancel();
  LOG(debug, "{}: goes on", describe_peer());
  std::unique_lock lock(mutex_);
  if (!writer_.empty() && !flushing_ && !blocked_ && !closed_) flush_soon();
  const bool receives = receiving_ && !paused_;
  lock.unlock();
  if (receives) wait_readable();
  return true;
}

// With mutex_ held: tells the peer, while there is a socket, that this end is meant.
void Channel::say_goodbye() {
  if (!lasting_ || lasting_->interrupted) return;
  writer_.append(number_frame(FrameKind::kGoodbye, 0));
}

void Channel::note_queued() {
  const std::size_t bytes = lasting_
                                ? std::max(lasting_->interrupted ? 0 : writer_.bytes() + unsent_,
                                           lasting_->queued_bytes())
                                : writer_.bytes() + unsent_;
  queued_bytes_.store(bytes, std::memory_order_relaxed);
}

}  // namespace runtime
