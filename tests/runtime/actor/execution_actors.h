// Actors for the tests of how calls are executed.
#pragma once

#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "runtime/runtime.h"
#include "tests/support/gate.h"
#include "tests/support/pauses.h"

namespace runtime::test {

/// Counts how many of its calls run at once. Fit for many threads.
class Busy {
 public:
  /// Runs until `count` calls of the group run at once, or fails after ten seconds.
  Status meet(const std::string& group, int count) {
    std::unique_lock lock(mutex_);
    const int peak = ++running_[group];
    peak_[group] = std::max(peak_[group], peak);
    if (peak >= count) met_[group] = true;
    changed_.notify_all();
    const bool met = changed_.wait_for(lock, std::chrono::seconds(10), [&] { return met_[group]; });
    --running_[group];
    return met ? Status() : deadline_exceeded("the calls do not run at once");
  }
  Status io(int count) { return meet("io", count); }
  Status compute(int count) { return meet("compute", count); }

  void work(int ms) {
    {
      std::lock_guard lock(mutex_);
      peak_["work"] = std::max(peak_["work"], ++running_["work"]);
    }
    support::work_for(std::chrono::milliseconds(ms));
    std::lock_guard lock(mutex_);
    --running_["work"];
  }
  int peak(const std::string& group) {
    std::lock_guard lock(mutex_);
    return peak_[group];
  }
  int add(int n) { return total_ += n; }
  int total() const { return total_; }
  int cores() const {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> running_, peak_;
  std::map<std::string, bool> met_;
  std::atomic<int> total_{0};
};

/// Can be interrupted, and says so.
class Patient {
 public:
  Result<int> wait(const CallContext& call, int ms) {
    ++started_;
    if (call.sleep_for(std::chrono::milliseconds(ms))) return ms;
    ++interrupted_;
    return call.status();
  }
  /// Looks at its context but goes on.
  int ignore(CallContext call, int ms) {
    ++started_;
    (void)call.sleep_for(std::chrono::milliseconds(ms));
    return call.cancelled() ? -1 : ms;
  }
  int block(int ms) {
    ++started_;
    support::work_for(std::chrono::milliseconds(ms));
    return ms;
  }
  /// 1 once the gate at that path is open.
  int pass(const std::string& gate) {
    ++started_;
    return support::Gate(gate).pass() ? 1 : 0;
  }
  Result<long> time_left_ms(const CallContext& call) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline() -
                                                                 std::chrono::steady_clock::now())
        .count();
  }
  int started() const { return started_; }
  int interrupted() const { return interrupted_; }
  int pid() const { return ::getpid(); }

 private:
  std::atomic<int> started_{0}, interrupted_{0};
};

inline void register_execution_actors(Runtime& rt) {
  rt.register_actor<Busy>("Busy", &Busy::meet, method(&Busy::io, {.concurrency_group = "io"}),
                          method("compute", &Busy::compute, {.concurrency_group = "compute"}),
                          &Busy::work, &Busy::peak, &Busy::add,
                          method(&Busy::total, {.concurrency_group = "io"}), &Busy::cores);
  rt.register_actor<Patient>(
      "Patient", &Patient::wait, &Patient::ignore, &Patient::block, &Patient::pass,
      &Patient::time_left_ms, method(&Patient::started, {.concurrency_group = "ask"}),
      method(&Patient::interrupted, {.concurrency_group = "ask"}), &Patient::pid);
}

}  // namespace runtime::test
