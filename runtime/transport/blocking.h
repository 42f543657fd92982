// Waiting for a callback on a plain thread.
#pragma once

#include <memory>
#include <optional>

#include "runtime/core/result.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// Runs `start(callback)` and waits, driving the loop, until the callback was given a Result<T>.
/// Not from a handler. kDeadlineExceeded: it was not called in time (a later call is harmless).
template <class T, class Start>
Result<T> wait_for(EventLoop& loop, Deadline deadline, Start start) {
  struct Waiting {
    explicit Waiting(EventLoop& loop) : done(loop) {}
    Event done;
    std::optional<Result<T>> result;
  };
  auto waiting = std::make_shared<Waiting>(loop);
  start([waiting](Result<T> result) {
    if (waiting->result) return;
    waiting->result.emplace(std::move(result));
    waiting->done.set();
  });
  // The callback's own deadline ends it; this is for a callback that is never called.
  Deadline patience = deadline > Deadline::max() - std::chrono::seconds(5)
                          ? Deadline::max()
                          : deadline + std::chrono::seconds(5);
  if (!loop.run_until(waiting->done, patience)) return deadline_exceeded("no answer in time");
  return std::move(*waiting->result);
}

/// The same for a callback that takes a Status.
template <class Start>
Status wait_done(EventLoop& loop, Deadline deadline, Start start) {
  auto result = wait_for<bool>(loop, deadline, [&](auto callback) {
    start(
        [callback](Status status) { status.ok() ? callback(true) : callback(std::move(status)); });
  });
  return result.status();
}

/// Runs `work` on the loop and waits for its result.
template <class Work>
auto on_loop(EventLoop& loop, Work work) -> decltype(work()) {
  std::optional<decltype(work())> result;
  Event done(loop);
  loop.post([&] {
    result.emplace(work());
    done.set();
  });
  loop.run_until(done, Deadline::max());
  return std::move(*result);
}

}  // namespace runtime
