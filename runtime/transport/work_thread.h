// WorkThread: one thread for work that blocks, such as a disk's, in the order in which it comes.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "runtime/core/result.h"
#include "runtime/core/thread.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// The thread is the operating system's, also in a simulation. Any thread may call its methods.
class WorkThread {
 public:
  WorkThread() = default;
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;
  /// stop().
  ~WorkThread() { stop(); }

  /// Makes the thread, unless there is one. Errors: as Thread::start(); a later call tries again.
  Status start();
  /// Needs a start() that succeeded. Work must not throw.
  void post(UniqueFunction<void()> work);
  /// Runs what was posted and ends. Idempotent.
  void finish();
  /// Ends after the work that is running; the rest is dropped. Idempotent.
  void stop();

 private:
  void serve();
  void join();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<UniqueFunction<void()>> waiting_;
  Thread thread_;
  bool ending_ = false;
};

}  // namespace runtime
