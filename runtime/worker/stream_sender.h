// StreamSender: the actor's side of a call that yields many values.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "runtime/call/call_context.h"
#include "runtime/call/stream.h"
#include "runtime/codec/encoder.h"
#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

class HeldResults;

/// Used by the thread that runs the method; the event loop tells how far the consumer is.
class StreamSender final : public StreamSink {
 public:
  /// What all streams of a process share; it outlives them.
  struct Shared {
    EventLoop& loop;
    const std::atomic<bool>& shut_down;
    CallObjects& objects;
    HeldResults& held;
  };

  StreamSender(const Shared& shared, std::shared_ptr<Channel> channel, ActorId actor,
               std::uint64_t sequence, std::uint32_t window, CallContext context);
  StreamSender(const StreamSender&) = delete;
  StreamSender& operator=(const StreamSender&) = delete;

  /// Sends a value; blocks while the consumer is a window behind. Errors: kCancelled (no reader any
  /// more), kDeadlineExceeded, kResourceExhausted (no room in the store).
  Status write(Encoder& value) override;
  /// The consumer has taken `count` values in all.
  void on_taken(std::uint64_t count);

 private:
  struct Wake {
    Event* event;
    void operator()() const { event->set(); }
  };

  Status wait_for_room(bool* consumer_waits);

  const Shared shared_;
  const std::shared_ptr<Channel> channel_;
  const ActorId actor_;
  const std::uint64_t sequence_;
  const std::uint32_t window_;
  const CallContext context_;
  Event event_;

  std::mutex mutex_;  // guards what follows
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;

  std::stop_callback<Wake> on_stop_;  // last: it uses the event
};

}  // namespace runtime
