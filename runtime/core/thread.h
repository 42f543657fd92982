// Thread: a thread of the runtime's own.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace runtime {

/// std::thread; in a simulation one of its threads, of which one runs at a time. Join it before it
/// is destroyed.
class Thread {
 public:
  Thread() = default;
  explicit Thread(std::function<void()> body);
  Thread(Thread&& other) noexcept
      : thread_(std::move(other.thread_)), simulated_(std::exchange(other.simulated_, 0)) {}
  Thread& operator=(Thread&& other) noexcept {
    thread_ = std::move(other.thread_);
    simulated_ = std::exchange(other.simulated_, 0);
    return *this;
  }

  bool joinable() const { return thread_.joinable() || simulated_ != 0; }
  void join();

 private:
  std::thread thread_;
  std::uint64_t simulated_ = 0;
};

}  // namespace runtime
