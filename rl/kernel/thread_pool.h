// ThreadPool: the threads that kernels share within one process or one policy worker.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace rl::kernel {

/// Runs loops on a fixed set of threads; the calling thread is one of them, so `threads() == 1`
/// starts none. Ranges are handed out as threads become free: what a range computes must not depend
/// on where it begins and ends. Thread-safe: a loop that begins while another one runs (from
/// another thread, or nested) runs on its caller alone.
class ThreadPool {
 public:
  /// `threads` <= 0 takes the cores this process may run on.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Changes the number of threads. Not while a loop runs.
  void set_threads(int threads);

  /// Calls body(begin, end) on disjoint ranges that cover [0, count), each at most `grain` long,
  /// and returns when all are done. A loop of one range runs in place, without waking a thread.
  template <class Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
    auto call = [](void* context, std::int64_t begin, std::int64_t end) {
      (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end);
    };
    run(count, grain, call, const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, std::int64_t begin, std::int64_t end);
  void run(std::int64_t count, std::int64_t grain, Call call, void* context);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The cores this process may run on (affinity and cgroup limits considered), at least 1.
int usable_cores();

}  // namespace rl::kernel
