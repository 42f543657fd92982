// Countdown: wakes a thread after a number of objects have settled.
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/transport/event_loop.h"

namespace runtime {

class Countdown {
 public:
  Countdown(EventLoop& loop, std::size_t count) : event_(loop), left_(static_cast<std::ptrdiff_t>(count)) {
    if (count == 0) event_.set();
  }

  void one() {
    if (left_.fetch_sub(1) == 1) event_.set();
  }
  Event& event() { return event_; }

 private:
  Event event_;
  std::atomic<std::ptrdiff_t> left_;
};

}  // namespace runtime
