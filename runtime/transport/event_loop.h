// EventLoop: the process's one io_context, run by the threads that wait for it.
//
// A thread that waits for a reply drives the sockets itself ("leader"), so that a synchronous call
// needs no switch to another thread. Other waiting threads ("followers") sleep until their event is
// set or there is no leader. When no thread waits, a background thread becomes the leader after
// about a millisecond, or at once when work is posted.
//
// Invariants: At most one thread runs handlers at any time, so handlers need no lock among
// themselves. A waiter sees that its Event was set without any further wake-up.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/core/asio.h"
#include "runtime/core/clock.h"
#include "runtime/core/fork_guard.h"
#include "runtime/core/status.h"
#include "runtime/core/thread.h"

namespace runtime {

class EventLoop;

/// The state that an Event shares with its loop.
struct LoopSignal {
  std::atomic<bool> is_set{false};
  void* waiter = nullptr;  // the Waiter of the thread in run_until; guarded by the loop's mutex
};

/// What a thread waits for in EventLoop::run_until. Set it from any thread; it stays set until
/// reset(). One waiter at a time. It may live on the waiting thread's stack: set() touches it only
/// before the waiter can return.
class Event {
 public:
  explicit Event(EventLoop& loop) : loop_(loop) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Wakes the waiter. Cost: a store when the waiter itself runs the handler that calls this; else
  /// a mutex.
  void set();
  void reset() { signal_.is_set.store(false, std::memory_order_seq_cst); }
  bool is_set() const { return signal_.is_set.load(std::memory_order_acquire); }

  const EventLoop& loop() const { return loop_; }
  /// For the loop.
  LoopSignal& signal() { return signal_; }

 private:
  EventLoop& loop_;
  LoopSignal signal_;
};

/// Owns the io_context and the background thread. Everything made with a loop must be gone before
/// it is destroyed.
class EventLoop {
 public:
  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  /// Stops the loop; handlers that have not run are destroyed unrun. No thread may be in run_until.
  ~EventLoop();

  /// kResourceExhausted if the background thread could not be started, see Thread::start(). Then
  /// connect() and listen() on this loop fail with it.
  const Status& status() const { return status_; }
  /// Whether this process is a fork()ed child of the one that made the loop. The loop belongs to
  /// the parent: here post() does nothing, and run_until() returns at once. Cost: a load.
  bool is_forked() const { return generation_ != fork_generation(); }

  asio::io_context& context() { return context_; }
  asio::io_context::executor_type executor() { return context_.get_executor(); }

  /// Runs `handler` on the loop soon, after this returns. Any thread. Prefer this to asio::post
  /// from outside the loop: when no thread is driving, it wakes the background thread at once.
  template <class Handler>
  void post(Handler&& handler) {
    if (is_forked()) return;
    posted_.fetch_add(1, std::memory_order_relaxed);
    asio::post(context_, [this, handler = std::forward<Handler>(handler)]() mutable {
      posted_.fetch_sub(1, std::memory_order_relaxed);
      handler();
    });
    if (leader_.load(std::memory_order_seq_cst) == nullptr) wake_background();
  }

  /// Whether the calling thread is running a handler of this loop now. Such a thread must not
  /// block.
  bool in_loop() const;

  /// Blocks until `event` is set or the deadline passes, running the loop's handlers on this thread
  /// when no other waiting thread does. Deadline::max() waits without end. Returns whether the
  /// event is set; false also once stop() was called. Not from inside a handler (that is a bug: the
  /// loop would wait for itself).
  bool run_until(Event& event, Deadline deadline);

  /// Implements Event::set().
  void set(LoopSignal& signal);

  /// Ends every run_until with false and the background thread; for shutting a process down.
  /// Idempotent, any thread.
  void stop();
  bool is_stopped() const { return stopping_.load(std::memory_order_relaxed); }

  /// For a simulation, where nothing else drives the loop: runs one ready handler. False: no
  /// handler is ready.
  bool step();

 private:
  struct Waiter;

  void background();
  void drive(Waiter& self, const LoopSignal* signal, Deadline deadline);
  void pass_on();  // with mutex_ held and no leader: wakes the next one
  void wake_background();
  void interrupt();  // makes the leader look at its flags

  const std::uint64_t generation_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};

  std::mutex mutex_;
  std::atomic<Waiter*> leader_{nullptr};  // written under mutex_
  Waiter* followers_first_ = nullptr;     // in order of arrival; guarded by mutex_
  Waiter* followers_last_ = nullptr;
  std::uint64_t turns_ = 0;  // how often a waiting thread became leader; guarded by mutex_
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> posted_{0};  // handlers of post() that have not run

  std::condition_variable background_wake_;
  bool background_asleep_ = false;  // sleeps without a timeout; guarded by mutex_
  bool background_wanted_ = false;  // work was posted while there was no leader; guarded by mutex_
  Status status_;
  Thread background_thread_;  // last: it uses the rest; none in a simulation
};

inline void Event::set() { loop_.set(signal_); }

}  // namespace runtime
