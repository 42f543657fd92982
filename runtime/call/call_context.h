// CallContext: a running method's view of its call: cancellation and the time that is left.
#pragma once

#include <chrono>
#include <stop_token>
#include <utility>

#include "runtime/call/fwd.h"
#include "runtime/core/status.h"

namespace runtime {

/// A method that wants it takes one before its arguments, which callers then do not give:
///
///   Result<int> search(const CallContext& call, Query query) {
///     while (!found) {
///       if (call.cancelled()) return call.status();
///       ...
///
/// Cancelling is a request: the method ends when it looks. A value; copies may outlive the call and
/// be used from any thread.
class CallContext {
 public:
  /// Never cancelled, no deadline.
  CallContext() = default;
  CallContext(std::stop_token token, Deadline deadline)
      : token_(std::move(token)), deadline_(deadline) {}

  /// Whether no caller waits for the result any more. Runtime::cancel was called, the caller is
  /// gone, the call's time is up, or the actor is being ended. Cost: an atomic load.
  bool cancelled() const { return token_.stop_requested(); }
  /// kCancelled when cancelled, else ok: `if (Status status = call.status(); !status.ok()) return
  /// status;`
  Status status() const;
  /// Sleeps, at most until the call is cancelled. Whether it slept to the end.
  bool sleep_for(std::chrono::steady_clock::duration duration) const;

  /// For std::condition_variable_any and std::stop_callback.
  const std::stop_token& stop_token() const { return token_; }
  /// How much of the call's time is left; zero once it is up.
  std::chrono::steady_clock::duration remaining() const;
  /// When the caller stops waiting.
  Deadline deadline() const { return deadline_; }

 private:
  std::stop_token token_;
  Deadline deadline_ = Deadline::max();
};

}  // namespace runtime
