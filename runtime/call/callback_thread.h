// CallbackThread: runs users' callbacks, one after another, off the event loop.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "runtime/core/thread.h"

namespace runtime {

/// Any thread may call its methods.
class CallbackThread {
 public:
  CallbackThread() = default;
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;
  ~CallbackThread() { stop(); }

  /// Makes the thread, unless there is one. Before the first run(). Errors: as Thread::start().
  Status start();
  /// What the callback throws is logged.
  void run(std::function<void()> callback);
  /// Waits for the callback that runs, unless this is called by it; the others do not run.
  /// Idempotent.
  void stop();

 private:
  void serve();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  Thread thread_;
  bool stopping_ = false;
};

}  // namespace runtime
