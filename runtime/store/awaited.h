// Awaited: an answer that a thread waits for, until it gives up. Private to runtime/store.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "runtime/transport/event_loop.h"

namespace runtime {

/// Shared by the waiting thread, which waits once, and the thread that brings the answer, on the
/// loop or elsewhere.
template <class T>
class Awaited {
 public:
  explicit Awaited(EventLoop& loop) : loop_(loop), done_(loop) {}

  /// Takes the answer. False when no thread waits for it any more: the answer then stays with the
  /// caller, for what it carries to be given back.
  bool offer(T& answer) {
    {
      std::lock_guard lock(mutex_);
      if (given_up_) return false;
      answer_ = std::move(answer);
    }
    done_.set();
    return true;
  }
  /// Ends the wait without an answer. Any thread.
  void wake() { done_.set(); }
  /// The answer; nothing at the deadline, or when woken before.
  std::optional<T> wait(Deadline deadline) {
    loop_.run_until(done_, deadline);
    std::lock_guard lock(mutex_);
    given_up_ = true;
    return std::move(answer_);
  }

 private:
  EventLoop& loop_;
  Event done_;
  std::mutex mutex_;
  bool given_up_ = false;
  std::optional<T> answer_;
};

}  // namespace runtime
