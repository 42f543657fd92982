#include "runtime/transport/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/transport/lasting_state.h"
#include "runtime/transport/socket.h"
#include "runtime/transport/socket_stream.h"

namespace runtime {

namespace {

// A thread that queues this much writes it itself, rather than letting the loop fall further
// behind.
constexpr std::size_t kFlushBytes = 64 << 10;
// After this many system calls a flushing thread leaves the rest to the loop: it has its own work.
constexpr int kFlushRoundsMax = 32;
// After this many receives other connections get their turn.
constexpr int kReceiveRoundsMax = 16;
// Of what a peer left behind: more records than a socket's buffer holds.
constexpr int kLastReceivesMax = 1 << 18;
// Expiring requests scans the table: its cost per second is bounded by scanning large tables less
// often.
constexpr std::chrono::nanoseconds kScanCostPerRequest{100};
constexpr std::chrono::milliseconds kTimerStep{1};

std::atomic<std::uint64_t> next_serial{1};

Message number_frame(FrameKind kind, std::uint64_t number) {
  Message message;
  message.kind = kind;
  message.id = number;
  return message;
}

}  // namespace

Channel::Channel(EventLoop& loop, ConnectionSocket socket, std::unique_ptr<SocketStream> stream,
                 PeerInfo peer, ChannelOptions options)
    : loop_(loop),
      serial_(next_serial.fetch_add(1, std::memory_order_relaxed)),
      peer_(std::move(peer)),
      options_(options),
      is_unix_(peer_.address.starts_with("unix:")),
      socket_(std::move(socket)),
      stream_(std::move(stream)),
      timer_(loop.context()),
      silence_(loop.context()),
      reader_(options.meta_bytes_max, options.payload_bytes_max) {
  close_in_child(socket_.native_handle());
}

Channel::~Channel() {
  if (socket_.is_open()) keep_in_child(socket_.native_handle());
}

void Channel::close_socket() {
  if (!socket_.is_open()) return;
  keep_in_child(socket_.native_handle());
  boost::system::error_code ignored;
  socket_.close(ignored);
}

// Of the socket; changes with mutex_ held, on the loop.
std::uint64_t Channel::epoch() const { return lasting_ ? lasting_->epoch : 0; }

// ---- sending

Status Channel::enqueue(std::unique_lock<std::mutex>& lock, Message& message, Flush when) {
  if (closed_) return close_reason_;
  if (!message.fds.empty() && !is_unix_) {
    return invalid_argument(describe_peer() + ": descriptors travel on Unix sockets only");
  }
  if (message.fds.size() > kFdsPerFrameMax || message.meta.size() % 8 != 0 ||
      message.meta.size() > options_.meta_bytes_max ||
      message.payload.size() > options_.payload_bytes_max) {
    return invalid_argument(describe_peer() + ": frame over the limits: message of " +
                            std::to_string(message.meta.size()) + " bytes, payload of " +
                            std::to_string(message.payload.size()) + ", " +
                            std::to_string(message.fds.size()) + " descriptors");
  }
  std::size_t bytes = FrameWriter::wire_bytes(message);
  if (const std::size_t queued = queued_bytes();
      queued > 0 && queued + bytes > options_.queued_bytes_max) {
    return resource_exhausted(describe_peer() + ": " + std::to_string(queued) +
                              " bytes wait to be sent; the peer reads slowly");
  }
  if (!message.fds.empty() && writer_.descriptors() >= options_.descriptors_queued_max) {
    return resource_exhausted(describe_peer() + ": " + std::to_string(writer_.descriptors()) +
                              " connections wait to be handed over; the peer is busy or stopped");
  }
  const bool connected = keep(message);
  if (connected) writer_.append(std::move(message));
  note_queued();
  if (!connected) return {};             // it leaves with the next socket
  if (flushing_ || blocked_) return {};  // the thread that is at it takes these along
  // A handler's frames leave together when it returns.
  if ((when == Flush::kNow && !loop_.in_loop()) || writer_.bytes() >= kFlushBytes) {
    flush(lock);
  } else {
    flush_soon();
  }
  return {};
}

bool Channel::has_unsent() const { return unsent_ > 0 || !writer_.empty(); }

void Channel::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  loop_.post([self = shared_from_this()] {
    std::unique_lock lock(self->mutex_);
    self->flush_posted_ = false;
    if (!self->flushing_ && !self->blocked_ && !self->closed_) self->flush(lock);
  });
}

void Channel::flush(std::unique_lock<std::mutex>& lock) {
  flushing_ = true;
  std::vector<Buffer> spent;
  const int fd = socket_.native_handle();  // stays open while flushing_ is set
  const std::uint64_t socket = epoch();
  for (int round = 0; has_unsent() && !closed_ && socket == epoch(); ++round) {
    if (round == kFlushRoundsMax) {
      flush_soon();
      break;
    }
    writer_.gather(batch_);
    spent.swap(writer_.spent());
    lock.unlock();
    spent.clear();
    const SocketStream::Sent sent = stream_->send(fd, batch_);
    const int error = sent.error;
    lock.lock();
    writer_.consume(sent.consumed);
    unsent_ = stream_->unsent();
    if (error == 0) {
      note_queued();
      check_drained();
    } else if (error == EAGAIN || error == EWOULDBLOCK) {
      blocked_ = true;
      loop_.post([self = shared_from_this()] { self->wait_writable(); });
      break;
    } else if (error != EINTR) {
      Status why = errno_status(error, describe_peer());
      if (lasting_) {
        loop_.post([self = shared_from_this(), why = std::move(why), socket] {
          self->interrupt(why, socket);
        });
        blocked_ = true;  // until then
      } else {
        end(std::move(why));
        has_last_words_ = receiving_ && !paused_;
      }
      break;
    }
  }
  flushing_ = false;
  if (closed_) loop_.post([self = shared_from_this()] { self->finish_close(); });
  if (writer_.spent().empty()) return;
  spent.swap(writer_.spent());
  lock.unlock();
  spent.clear();
  lock.lock();
}

// With mutex_ held. They run outside of it.
void Channel::check_drained() {
  if (draining_.are_due(queued_bytes()))
    loop_.post([self = shared_from_this()] { self->tell_drained(); });
}

void Channel::tell_drained() {
  std::vector<DrainWaiters::Drained> due;
  {
    std::lock_guard lock(mutex_);
    due = draining_.take_due(closed_ ? 0 : queued_bytes());
  }
  for (auto& drained : due) drained();
}

void Channel::when_drained(std::size_t bytes, UniqueFunction<void()> drained) {
  std::lock_guard lock(mutex_);
  draining_.add(bytes, std::move(drained));
  if (closed_ || queued_bytes() <= bytes)
    loop_.post([self = shared_from_this()] { self->tell_drained(); });
}

void Channel::wait_writable() {
  if (shut_) return;
  std::unique_lock held(mutex_);
  if (!blocked_) return;  // of a socket that is gone
  const std::uint64_t socket = epoch();
  held.unlock();
  socket_.async_wait(ConnectionSocket::wait_write,
                     [self = shared_from_this(), socket](const boost::system::error_code& ec) {
                       std::unique_lock lock(self->mutex_);
                       if (socket != self->epoch()) return;
                       self->blocked_ = false;
                       if (!ec && !self->closed_ && !self->flushing_) self->flush(lock);
                     });
}

Status Channel::send(Message message, Flush when) {
  if (loop_.is_forked()) return forked_status();
  std::unique_lock lock(mutex_);
  return enqueue(lock, message, when);
}

void Channel::request(Message message, Deadline deadline, Reply reply) {
  request_into(std::move(message), deadline, {}, nullptr, std::move(reply));
}

void Channel::request_into(Message message, Deadline deadline, std::span<std::byte> target,
                           std::shared_ptr<void> owner, Reply reply) {
  if (loop_.is_forked()) return reply(forked_status());
  begin_receiving();
  std::unique_lock lock(mutex_);
  if (closed_) return fail_later(std::move(reply), close_reason_);
  if (pending_.size() >= options_.requests_max) {
    return fail_later(std::move(reply),
                      resource_exhausted(describe_peer() + ": " + std::to_string(pending_.size()) +
                                         " requests are outstanding"));
  }
  // Alone, the caller wants its answer; behind others, the frame may as well travel with them.
  Flush when = pending_.size() == 0 ? Flush::kNow : Flush::kSoon;
  std::uint64_t id = pending_.add({std::move(reply), deadline, {target, std::move(owner)}});
  message.id = id;
  if (deadline < timer_at_) {
    timer_at_ = deadline;
    loop_.post([self = shared_from_this()] { self->arm_timer(); });
  }
  Status status = enqueue(lock, message, when);
  if (status.ok()) return;
  if (auto entry = pending_.take(id)) fail_later(std::move(entry->reply), std::move(status));
}

asio::awaitable<Result<Message>> Channel::request(Message message, Deadline deadline) {
  auto initiate = [](auto handler, Channel* channel, Message outgoing, Deadline until) {
    channel->request(
        std::move(outgoing), until, [handler = std::move(handler)](Result<Message> result) mutable {
          auto executor = asio::get_associated_executor(handler);
          asio::dispatch(executor,
                         [handler = std::move(handler), result = std::move(result)]() mutable {
                           std::move(handler)(std::move(result));
                         });
        });
  };
  auto self = shared_from_this();  // until the reply
  auto result = co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Result<Message>)>(
      initiate, asio::use_awaitable, this, std::move(message), deadline);
  co_return result;
}

Result<Message> Channel::request_blocking(Message message, Deadline deadline) {
  struct Waiting {
    explicit Waiting(EventLoop& loop) : done(loop) {}
    Event done;
    std::optional<Result<Message>> result;
  };
  // Shared, since a stopped loop ends the wait before the reply.
  auto waiting = std::make_shared<Waiting>(loop_);
  request(std::move(message), deadline, [waiting](Result<Message> result) {
    waiting->result = std::move(result);
    waiting->done.set();
  });
  if (!loop_.run_until(waiting->done, Deadline::max()))
    return cancelled(describe_peer() + ": the event loop was stopped");
  return std::move(*waiting->result);
}

void Channel::fail_later(Reply reply, Status why) {
  loop_.post([reply = std::move(reply), why = std::move(why)]() mutable { reply(std::move(why)); });
}

// ---- receiving

void Channel::set_handler(Handler handler) {
  auto shared = std::make_shared<Handler>(std::move(handler));
  if (loop_.in_loop())
    handler_in_use_ = shared;  // also for the frames behind the one being handled
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    handler_ = std::move(shared);
  }
  begin_receiving();
}

void Channel::set_on_late_reply(Handler handler) {
  auto shared = std::make_shared<Handler>(std::move(handler));
  std::lock_guard lock(mutex_);
  if (!closed_) late_ = std::move(shared);
}

void Channel::begin_receiving() {
  {
    std::lock_guard lock(mutex_);
    if (receiving_ || closed_) return;
    receiving_ = true;
  }
  loop_.post([self = shared_from_this()] {
    self->wait_readable();
    if (!self->is_unix_ && simulation() == nullptr) self->watch_silence();
  });
}

void Channel::watch_silence() {
  if (shut_) return;
  // A peer that reads nothing keeps nothing unacknowledged: what it has no room for is not on its
  // way.
  const auto is_silent = [this] {
    return socket_.is_open() && transport_detail::is_unacknowledged(socket_, SilenceWatch::kTick);
  };
  silence_.start(weak_from_this(), is_silent, [this] {
    const Status why =
        deadline_exceeded(describe_peer() + ": its machine has acknowledged nothing for " +
                          std::to_string(SilenceWatch::kTicksMax) + " s");
    if (interrupt(why, epoch())) return true;
    close(unavailable(why.message()));
    return false;
  });
}

void Channel::pause_receiving() {
  std::lock_guard lock(mutex_);
  paused_ = true;
}

void Channel::resume_receiving() {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(paused_, false) || !receiving_) return;
  }
  loop_.post([self = shared_from_this()] { self->wait_readable(); });
}

void Channel::wait_readable() {
  if (shut_ || waiting_readable_ || !socket_.is_open()) return;
  waiting_readable_ = true;
  if (stream_->holds_frames()) {  // of which the socket knows nothing any more
    loop_.post([self = shared_from_this(), socket = epoch()] {
      if (socket != self->epoch()) return;
      self->waiting_readable_ = false;
      if (!self->shut_) self->on_readable();
    });
    return;
  }
  socket_.async_wait(ConnectionSocket::wait_read, [self = shared_from_this(), socket = epoch()](
                                                      const boost::system::error_code& ec) {
    if (socket != self->epoch()) return;
    self->waiting_readable_ = false;
    if (!ec) self->on_readable();
  });
}

void Channel::on_readable() {
  bool drained = false;
  for (int round = 0; round < kReceiveRoundsMax && !drained; ++round) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || paused_) return;
      handler_in_use_ = handler_;
    }
    const std::uint64_t socket = epoch();
    Status status = receive(drained);
    if (socket != epoch()) return;  // a handler, or a frame, gave the socket up
    if (!status.ok() && status.code() != ErrorCode::kInvalidArgument && interrupt(status, socket))
      return;
    if (!status.ok()) return close(std::move(status));
  }
  wait_readable();
}

Status Channel::receive(bool& drained) {
  auto received = stream_->receive(socket_.native_handle(), reader_, *this);
  drained = received.drained;
  return received.status.ok() ? Status() : received.status.with_context(describe_peer());
}

void Channel::on_frame(Message message) {
  if (!count_received(message)) return;
  if (is_reply(message.kind)) {
    std::optional<PendingTable::Entry> entry;
    std::shared_ptr<Handler> late;
    {
      std::lock_guard lock(mutex_);
      entry = pending_.take(message.id);
      if (!entry) late = late_;
    }
    if (entry)
      entry->reply(std::move(message));
    else if (late)
      (*late)(shared_from_this(), std::move(message));
    return;
  }
  if (auto handler = handler_in_use_; handler && *handler) {
    (*handler)(shared_from_this(), std::move(message));
  } else {
    LOG(warn, "{}: no handler for frames of kind {}", describe_peer(),
        static_cast<int>(message.kind));
  }
}

PayloadTarget Channel::payload_target(const FrameHeader& header) {
  if (!is_reply(static_cast<FrameKind>(header.kind))) return {};
  std::lock_guard lock(mutex_);
  PendingTable::Entry* entry = pending_.find(header.id);
  return entry ? entry->target : PayloadTarget{};
}

// ---- deadlines

void Channel::arm_timer() {
  if (shut_) return;
  Deadline at;
  {
    std::lock_guard lock(mutex_);
    at = timer_at_;
  }
  if (at == Deadline::max()) return;
  timer_.expires_at(at);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
    if (!ec) self->on_timer();
  });
}

void Channel::on_timer() {
  Deadline now = steady_now();
  std::vector<PendingTable::Entry> expired;
  {
    std::lock_guard lock(mutex_);
    Deadline next;
    expired = pending_.take_expired(now, &next);
    Deadline soonest =
        now + std::max<std::chrono::nanoseconds>(kTimerStep, kScanCostPerRequest * pending_.size());
    timer_at_ = next == Deadline::max() ? next : std::max(next, soonest);
  }
  arm_timer();
  for (auto& entry : expired)
    entry.reply(deadline_exceeded(describe_peer() + ": no reply within the deadline"));
}

// ---- closing

void Channel::end(Status reason) {
  if (closed_) return;
  closed_ = true;
  // A silent machine is no deadline of those who ask something of it.
  close_reason_ = reason.code() == ErrorCode::kDeadlineExceeded ? unavailable(reason.message())
                                                                : std::move(reason);
}

void Channel::close(Status reason) {
  if (loop_.is_forked()) return;
  if (reason.ok()) reason = unavailable(describe_peer() + ": closed here");
  std::unique_lock lock(mutex_);
  if (closed_) return;
  say_goodbye();
  if (!flushing_ && !blocked_ && has_unsent()) flush(lock);  // what was accepted gets its chance
  if (closed_) return;
  end(std::move(reason));
  if (!flushing_) loop_.post([self = shared_from_this()] { self->finish_close(); });
}

// A peer that cannot be written to any more may have answered before it went: that is here already,
// and is taken in first.
void Channel::hear_last_words() {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(has_last_words_, false)) return;
    handler_in_use_ = handler_;
  }
  bool drained = false;
  for (int round = 0; round < kLastReceivesMax && !drained; ++round) {
    if (!receive(drained).ok()) return;  // it has ended already, and why is known
  }
}

void Channel::finish_close() {
  hear_last_words();
  std::vector<PendingTable::Entry> entries;
  std::function<void(Status)> on_close;
  std::shared_ptr<Handler> handler, late;
  FrameWriter unsent;
  std::deque<Message> kept;
  Status reason;
  {
    std::lock_guard lock(mutex_);
    if (shut_ || flushing_) return;  // the flushing thread posts this again
    shut_ = true;
    entries = pending_.take_all();
    on_close = std::exchange(on_close_, nullptr);
    handler = std::exchange(handler_, nullptr);
    late = std::exchange(late_, nullptr);
    std::swap(unsent, writer_);
    if (lasting_) {
      kept.swap(lasting_->kept);
      lasting_->kept_bytes = 0;
    }
    queued_bytes_.store(0, std::memory_order_relaxed);
    reason = close_reason_;
  }
  handler_in_use_.reset();
  timer_.cancel();
  silence_.stop();
  reader_ = FrameReader(
      options_.meta_bytes_max,
      options_.payload_bytes_max);  // with the place for a payload that had come in part
  if (lasting_) lasting_->give_up.cancel();
  close_socket();
  Status failure =
      reason.code() == ErrorCode::kUnavailable ? reason : unavailable(reason.message());
  for (auto& entry : entries) entry.reply(failure);
  tell_drained();
  if (on_close) on_close(reason);
}

void Channel::set_on_close(std::function<void(Status)> on_close) {
  std::unique_lock lock(mutex_);
  if (closed_ && shut_) {
    lock.unlock();
    loop_.post([on_close = std::move(on_close), reason = close_reason()] { on_close(reason); });
    return;
  }
  on_close_ = std::move(on_close);
  lock.unlock();
  begin_receiving();
}

bool Channel::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

Status Channel::close_reason() const {
  std::lock_guard lock(mutex_);
  return close_reason_;
}

std::size_t Channel::outstanding() const {
  std::lock_guard lock(mutex_);
  return pending_.size();
}

// ---- outliving a socket

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
  lasting.unconfirmed_bytes += FrameWriter::wire_bytes(message);
  if (lasting.received - lasting.confirmed_to_peer >= kConfirmFrames ||
      lasting.unconfirmed_bytes >= kConfirmBytes) {
    lasting.confirmed_to_peer = lasting.received;
    lasting.unconfirmed_bytes = 0;
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
    check_drained();
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
  lasting.confirmed_to_peer = lasting.received;
  lasting.unconfirmed_bytes = 0;
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

bool Channel::resume(ConnectionSocket socket, std::unique_ptr<SocketStream> stream,
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
      check_drained();
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
