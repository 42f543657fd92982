// OutgoingCall: a call as its caller keeps it, from call() until its result is settled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/call/awaited_call.h"
#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/core/clock.h"
#include "runtime/core/result.h"

namespace runtime {

/// Guarded by its owner's mutex, where nothing else is said.
struct OutgoingCall final : AwaitedCall {
  std::shared_ptr<CallOwner> owner;
  const MethodEntry* method = nullptr;
  ObjectValue arguments;
  Deadline deadline;
  std::chrono::milliseconds timeout{0};  // of which it is the end
  ObjectStatePtr result;
  std::int32_t retries_left = 0;           // below zero: without limit
  std::uint64_t order = 0;                 // among the owner's calls
  std::atomic<std::uint64_t> sequence{0};  // 0: not sent. Any thread may read it
  std::shared_ptr<Channel> channel;        // it was sent on
  std::uint64_t incarnation = 0;           // it was sent to
  std::shared_ptr<StreamState> stream;     // of a method that yields values
  std::uint64_t sent_ns = 0;               // when calls are recorded
  std::uint32_t sent_by = 0;               // the thread
  std::atomic<bool> forced{false};  // cancelled by force: the actor's process may end because of it
  std::string cycle;  // of waits that it is part of; empty: none is known. On the loop

  /// `what`, with the limit and the cycle.
  Status late(const std::string& what) const {
    std::string text =
        timeout.count() > 0 ? what + " (of " + std::to_string(timeout.count()) + " ms)" : what;
    return deadline_exceeded(cycle.empty() ? text : text + ": " + cycle);
  }
  Status cancel(const std::shared_ptr<Producer>& self, CancelMode mode) override;
  std::string describe() const override;
  bool has_own_limit() const override;
  void tell(const std::vector<WaitStep>& waits) const override;
  void on_cycle(const std::shared_ptr<Producer>& self, const std::string& text,
                bool fails) override;
  /// Settles the result. Without the owner's mutex.
  void fail(const Status& why) const;
  /// Records that it was sent when it was recorded as such, and has ended now.
  void record_end(bool failed) const;

  /// The first argument that is not there yet.
  ObjectStatePtr blocker() const;
};

}  // namespace runtime
