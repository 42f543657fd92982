// Countdown: wakes a thread after a number of objects have settled.
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/call/object_state.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// What a failed object means to a caller that waits for several.
enum class OnFailure {
  kCount,   // it is settled like any other
  kReturn,  // the wait is over
};

/// Lives on the waiting thread's stack.
class Countdown final : public WaitSink {
 public:
  Countdown(EventLoop& loop, std::size_t count, OnFailure on_failure = OnFailure::kCount)
      : event_(loop), left_(static_cast<std::ptrdiff_t>(count)), on_failure_(on_failure) {
    if (count == 0) event_.set();
  }

  void on_settled(WaitNode&, const ObjectState& object) override {
    const bool enough = left_.fetch_sub(1) == 1;
    if (enough || (on_failure_ == OnFailure::kReturn && !object.failure().ok())) event_.set();
  }
  Event& event() { return event_; }

 private:
  Event event_;
  std::atomic<std::ptrdiff_t> left_;
  const OnFailure on_failure_;
};

}  // namespace runtime
