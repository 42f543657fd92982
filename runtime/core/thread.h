// Thread: a std::thread whose start may fail with a Status, and that a simulation can run.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/result.h"

namespace runtime {

/// std::thread, but a failure to make one is a Status; in a simulation one of its threads, of which
/// one runs at a time. Join it before it is destroyed.
class Thread {
 public:
  /// Errors: kResourceExhausted, which names the limit of processes and threads and where to raise
  /// it.
  static Result<Thread> start(std::function<void()> body);
  /// The same on a thread of the operating system, also in a simulation.
  static Result<Thread> start_real(std::function<void()> body);

  Thread() = default;
  Thread(Thread&& other) noexcept
      : thread_(std::move(other.thread_)), simulated_(std::exchange(other.simulated_, 0)) {}
  Thread& operator=(Thread&& other) noexcept {
    thread_ = std::move(other.thread_);
    simulated_ = std::exchange(other.simulated_, 0);
    return *this;
  }

  bool joinable() const { return thread_.joinable() || simulated_ != 0; }
  bool is_current() const { return thread_.get_id() == std::this_thread::get_id(); }
  void join();
  void detach() { thread_.detach(); }

 private:
  std::thread thread_;
  std::uint64_t simulated_ = 0;
};

/// Helpers for work that its caller shares: fewer than asked for, or none, where the machine has no
/// more threads. The caller does the rest itself. Joined at the end of their scope.
class HelperThreads {
 public:
  HelperThreads() = default;
  HelperThreads(std::size_t count, const std::function<void()>& body);
  HelperThreads(HelperThreads&&) = default;
  HelperThreads& operator=(HelperThreads&&) = default;
  ~HelperThreads() { join(); }

  std::size_t size() const { return threads_.size(); }
  void join();

 private:
  std::vector<Thread> threads_;
};

/// That no thread can be made, with the limits that hold here and where to raise them.
Status thread_limit_status(int error);

}  // namespace runtime
