// Channel: one authenticated connection, carrying requests, replies and one-way frames in both
// directions.
//
// An open channel keeps itself alive until close() or the end of the connection.
// Any thread may call any method. Callbacks (handler, replies, on_close) run on the event loop, one
// at a time, and must not block. Frames arrive in the order in which they were sent. The calling
// thread itself writes a request that is made while nothing is outstanding; later ones are
// collected and written together in one system call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/asio.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/transport/connection_socket.h"
#include "runtime/transport/drain_waiters.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/frame.h"
#include "runtime/transport/frame_reader.h"
#include "runtime/transport/frame_writer.h"
#include "runtime/transport/peer_info.h"
#include "runtime/transport/pending_table.h"
#include "runtime/transport/silence_watch.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

class SocketStream;

/// Limits of one connection. Exceeding a receive limit closes it: the peer is broken or hostile.
struct ChannelOptions {
  std::uint64_t meta_bytes_max = 64ull << 20;
  std::uint64_t payload_bytes_max = 1ull << 30;
  // Unsent frames; a single frame may exceed it when nothing is queued.
  std::size_t queued_bytes_max = 256ull << 20;
  std::size_t requests_max = 1 << 20;  // outstanding
  // Unsent: a process has few, and connections of unknown peers are handed over as descriptors.
  std::size_t descriptors_queued_max = 256;
  /// How long a lasting connection may be without a socket before it ends.
  std::chrono::milliseconds interruption_max{10'000};
};

/// When a frame is written to the socket.
enum class Flush {
  kNow,   // written by this thread before send() returns, if the socket takes it; from a handler:
          // when the handler returns
  kSoon,  // by the event loop, together with others
};

/// Size: sending, receiving and closing share one socket, one lock and one order, which separate
/// parts would have to pass to each other.
class Channel final : public std::enable_shared_from_this<Channel>, private FrameSink {
 public:
  /// Called exactly once, on the loop.
  using Reply = UniqueFunction<void(Result<Message>)>;
  using Handler = std::function<void(const std::shared_ptr<Channel>&, Message)>;

  /// `socket` is connected and has completed the handshake. Made by connect() and Listener.
  Channel(EventLoop& loop, ConnectionSocket socket, std::unique_ptr<SocketStream> stream,
          PeerInfo peer, ChannelOptions options);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// Sends a request. The reply is a frame of the peer, or a failure. kDeadlineExceeded: the peer
  /// may still act on it. kUnavailable: connection closed, with the reason. kResourceExhausted:
  /// queue or table full; nothing was sent.
  void request(Message message, Deadline deadline, Reply reply);
  /// The same with a buffer for the reply's payload. A large payload (64 KiB and up) of exactly
  /// `target.size()` bytes is received straight into `target`. The reply's payload is then a view
  /// of it. `target` stays valid while `owner` lives.
  void request_into(Message message, Deadline deadline, std::span<std::byte> target,
                    std::shared_ptr<void> owner, Reply reply);
  /// The same for coroutines; resumes on the loop.
  asio::awaitable<Result<Message>> request(Message message, Deadline deadline);
  /// The same for a plain thread: waits in EventLoop::run_until. Not from a handler.
  Result<Message> request_blocking(Message message, Deadline deadline);

  /// Sends a one-way frame or a reply. A failure means that it was not sent: kUnavailable,
  /// kResourceExhausted, kInvalidArgument (descriptors on a TCP connection, frame over the limits).
  Status send(Message message, Flush flush = Flush::kNow);

  /// Sets the handler of requests and one-way frames. Receiving begins with the first set_handler,
  /// set_on_close or request; set it before making requests if the peer may call back at once. A
  /// frame without a handler is dropped with a log line.
  void set_handler(Handler handler);
  /// Sets the handler of replies that arrive after their deadline. Without it they are dropped.
  void set_on_late_reply(Handler handler);
  /// Called once on the loop when the connection has ended, after all outstanding replies have
  /// failed; at once if it has already.
  void set_on_close(std::function<void(Status)> on_close);

  /// Back-pressure: while paused nothing is received, so that the peer's queue fills up.
  void pause_receiving();
  void resume_receiving();
  /// Back-pressure on this side: calls back once, on the loop, when at most `bytes` wait to be
  /// sent, or when the connection has ended.
  void when_drained(std::size_t bytes, UniqueFunction<void()> drained);

  /// Makes a TCP connection outlive its socket, under a number that only the two sides know
  /// (lasting_state.h). Sent frames are kept until the peer confirms them, and a broken socket
  /// neither fails requests nor calls on_close. `on_interrupt` runs on the loop when the socket has
  /// broken; on the side that connected, it must resume(). Call right after construction. For
  /// connect() and Listener.
  void make_lasting(std::uint64_t session, std::function<void()> on_interrupt);
  /// The number of frames received, and of sockets used before.
  struct Detached {
    std::uint64_t received = 0;
    std::uint64_t epoch = 0;
  };
  /// Closes the socket of a lasting connection, if it has one. On the loop.
  Detached detach();
  /// Continues over a new socket, after its handshake, to a peer that has received `peer_received`
  /// frames. False: it has ended, or another socket was faster. On the loop.
  bool resume(ConnectionSocket socket, std::unique_ptr<SocketStream> stream,
              std::uint64_t peer_received, const Detached& detached);
  /// Whether a lasting connection is without a socket now.
  bool is_interrupted() const;
  /// The reason: kDeadlineExceeded if the machine at the other end has gone silent, kUnavailable if
  /// the process there, or something between, closed the socket. Ok unless it is interrupted.
  Status interruption() const;
  /// Called on the loop when an interruption begins; need not do anything about it.
  void set_on_interrupt(std::function<void()> on_interrupt);

  /// Ends the connection: outstanding requests fail with kUnavailable and this reason. Frames still
  /// queued are tried once. Idempotent.
  void close(Status reason);
  bool closed() const;
  /// Why the connection ended; ok while it is open.
  Status close_reason() const;

  const PeerInfo& peer() const { return peer_; }
  /// Larger than that of every channel made before: unlike the order of addresses, the order of
  /// serials is the same in each run.
  std::uint64_t serial() const { return serial_; }
  /// For messages: "worker 7f3a0011 (pid 1234) at unix:/run/...".
  std::string describe_peer() const { return peer_.describe(); }
  EventLoop& loop() { return loop_; }
  bool is_unix() const { return is_unix_; }
  /// Accepted bytes that the kernel has not taken yet. Cost: an atomic load.
  std::size_t queued_bytes() const { return queued_bytes_.load(std::memory_order_relaxed); }
  std::size_t outstanding() const;

 private:
  struct Lasting;

  void on_frame(Message message) override;
  PayloadTarget payload_target(const FrameHeader& header) override;

  // With mutex_ held through `lock`; flush() releases it during the system call. Objects that
  // messages own are never destroyed under it: an owner may call into a channel in its destructor.
  Status enqueue(std::unique_lock<std::mutex>& lock, Message& message, Flush flush);
  void flush(std::unique_lock<std::mutex>& lock);
  void flush_soon();
  bool has_unsent() const;
  void end(Status reason);
  void check_drained();
  bool keep(const Message& message);
  void say_goodbye();
  void note_queued();

  // On the loop.
  void wait_writable();
  void wait_readable();
  void watch_silence();
  void on_readable();
  Status receive(bool& drained);
  void arm_timer();
  void on_timer();
  void tell_drained();
  bool count_received(const Message& message);
  void on_confirmed(std::uint64_t through);
  bool interrupt(const Status& why, std::uint64_t epoch);
  std::uint64_t epoch() const;
  void finish_close();
  void close_socket();
  void hear_last_words();

  void begin_receiving();
  void fail_later(Reply reply, Status why);

  EventLoop& loop_;
  const std::uint64_t serial_;
  const PeerInfo peer_;
  const ChannelOptions options_;
  const bool is_unix_;

  // Touched on the loop only, but for sending by the thread that has set flushing_.
  ConnectionSocket socket_;
  std::unique_ptr<SocketStream> stream_;
  Timer timer_;
  SilenceWatch silence_;
  FrameReader reader_;
  std::unique_ptr<Lasting>
      lasting_;  // null: the connection ends with its socket. Constant after make_lasting()
  std::shared_ptr<Handler> handler_in_use_;
  bool waiting_readable_ = false;
  bool shut_ = false;  // finish_close() ran

  std::atomic<std::size_t> queued_bytes_{0};  // writer_.bytes(), to be read without the mutex

  mutable std::mutex mutex_;  // guards what follows
  FrameWriter writer_;
  FrameWriter::Batch batch_;  // belongs to the thread that has set flushing_
  std::size_t unsent_ = 0;    // of stream_, which took it from the writer
  PendingTable pending_;
  std::shared_ptr<Handler> handler_;
  std::shared_ptr<Handler> late_;  // set_on_late_reply
  std::function<void(Status)> on_close_;
  Status close_reason_;
  Deadline timer_at_ = Deadline::max();
  DrainWaiters draining_;
  bool closed_ = false;
  bool receiving_ = false;  // begin_receiving() was called
  bool paused_ = false;
  // Sending failed, and the socket may hold what the peer sent before.
  bool has_last_words_ = false;
  bool flushing_ = false;  // a thread is in sendmsg
  bool blocked_ = false;   // waiting for the socket to take more
  bool flush_posted_ = false;
};

/// For tables of channels that are iterated in order.
struct ChannelOrder {
  bool operator()(const Channel* a, const Channel* b) const { return a->serial() < b->serial(); }
};

}  // namespace runtime
