// StreamState: the caller's side of a call that yields many values: those that have come and were
// not taken yet.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/call/blocked_calls.h"
#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/core/result.h"

namespace runtime {

/// One thread takes; the event loop puts. The producer may be at most `window` values ahead of what
/// was taken.
class StreamState {
 public:
  StreamState(CallerContextPtr context, std::uint32_t window);
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;
  ~StreamState();

  std::uint32_t window() const { return window_; }

  /// The next value, settled; null at the end. Errors: kDeadlineExceeded (ask again), and once all
  /// values are taken why the call ended.
  Result<ObjectStatePtr> next(Deadline deadline);
  /// Whether next() has nothing more to give.
  bool ended() const;
  /// No caller takes any more: what comes is dropped.
  void abandon();

  /// On the event loop.
  void put(ObjectValue value);
  /// The call's result has settled.
  void end(Status status);
  /// Which call it belongs to, for telling the producer how far the consumer is.
  void set_call(std::weak_ptr<OutgoingCall> call) { call_ = std::move(call); }

 private:
  BlockedCalls::Producers producers() const;

  const CallerContextPtr context_;
  const std::uint32_t window_;
  std::weak_ptr<OutgoingCall> call_;  // set before the stream is shared
  std::unique_ptr<Event> event_;

  mutable std::mutex mutex_;  // guards what follows
  std::deque<ObjectValue> values_;
  std::optional<Status> end_;
  std::uint64_t taken_ = 0;
  std::uint64_t told_ = 0;  // of which the producer knows
  bool abandoned_ = false;
};

}  // namespace runtime
