// block_until(): waiting for an event on a thread that may be serving actors.
#pragma once

#include "runtime/transport/event_loop.h"

namespace runtime {

/// Serves something on its threads, and wants to know when one of them waits.
class ThreadServer {
 public:
  /// As EventLoop::run_until, by a thread of this server's.
  virtual bool block_until(EventLoop& loop, Event& event, Deadline deadline) = 0;

  /// Makes it the server of the calling thread (null: it has none); returns the one before.
  static ThreadServer* exchange_current(ThreadServer* next);

 protected:
  ~ThreadServer() = default;
};

/// EventLoop::run_until for code that may be inside of a method: false at the deadline.
bool block_until(EventLoop& loop, Event& event, Deadline deadline);

}  // namespace runtime
