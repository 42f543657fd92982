// ActorExecutor: the threads that run a process's actors.
//
// The threads that have nothing to run drive the event loop (transport/event_loop.h). So a call
// that comes in is run by the thread that received it. The others sleep. A process of one actor has
// one thread, its main one. A process of shared actors has one per CPU, and one more for each that
// a method blocks by waiting for an object. So actors that wait for each other do not starve.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/core/thread.h"
#include "runtime/transport/block_until.h"
#include "runtime/transport/event_loop.h"
#include "runtime/worker/runnable.h"

namespace runtime {

struct ActorExecutorOptions {
  /// Threads that may wait inside of methods at once; beyond it, actors wait for a thread.
  std::size_t threads_max = 1024;
  /// Idle threads kept besides the wanted ones, so that methods that wait now and then do not start
  /// one each time.
  std::size_t spare_threads = 8;
  /// Calls of one actor before another's turn comes.
  std::size_t calls_per_turn = 64;
};

/// Any thread may call any method, but for run().
class ActorExecutor final : public ThreadServer {
 public:
  explicit ActorExecutor(EventLoop& loop, ActorExecutorOptions options = {});
  ActorExecutor(const ActorExecutor&) = delete;
  ActorExecutor& operator=(const ActorExecutor&) = delete;
  /// run() must have returned.
  ~ActorExecutor();

  /// Serves on the calling thread until stop(); then waits for the calls that other threads are
  /// running.
  void run();
  void stop();

  /// How many threads run actors at once, the one in run() included. Never shrinks.
  void want_threads(std::size_t count);

  /// Gives it a turn soon, on one thread.
  void post(std::shared_ptr<Runnable> line);

  /// What a thread has of the executor it serves. A simulation changes it with its threads.
  struct Current {
    ActorExecutor* executor = nullptr;
    const void* seat = nullptr;
    int blocked = 0;  // nested waits count once
  };
  static Current exchange_current(Current next);

  /// `waits_long` is called once, when a thread has waited inside of a method for kLongWait, and on
  /// that thread.
  static constexpr std::chrono::milliseconds kLongWait{100};
  void set_on_long_wait(std::function<void()> waits_long);

  bool block_until(EventLoop& loop, Event& event, Deadline deadline) override;

  /// Marks that the calling thread waits inside of a method, if it is an executor's: another may
  /// take its place meanwhile.
  class Blocked {
   public:
    Blocked();
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    ~Blocked();

   private:
    ActorExecutor* executor_;
  };

 private:
  struct Seat;

  void serve(Seat& seat, bool is_main);
  void dispatch();  // with mutex_ held: sees that a thread takes the first of ready_
  void start_thread();
  bool surplus() const;

  EventLoop& loop_;
  const ActorExecutorOptions options_;

  std::mutex mutex_;  // guards what follows; taken before the loop's
  std::deque<std::shared_ptr<Runnable>> ready_;
  std::vector<Seat*> idle_;
  std::list<Thread> threads_;  // all but the one in run()
  std::list<Thread> retired_;  // have left, or are about to; to be joined
  std::size_t wanted_ = 1;
  std::size_t blocked_ = 0;
  bool stopping_ = false;
  bool lacks_threads_ = false;  // and has said so
  std::function<void()> on_long_wait_;
  std::atomic<bool> tells_long_waits_{false};  // to be read without the mutex
};

}  // namespace runtime
