// Pulse: a rank's progress, which others may ask for while the rank is in a call.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

namespace rl {

struct Pulse {
  std::uint64_t steps = 0;       // grows with whatever the rank gets done
  std::uint64_t operations = 0;  // collectives begun
  bool waiting = false;          // in a collective
  std::string where;             // "all-reduce of gradients"; what it did last

  auto fields() { return std::tie(steps, operations, waiting, where); }
  bool operator==(const Pulse&) const = default;
};

/// Takes down what a rank does. Thread-safe.
class PulseRecorder {
 public:
  /// Something was done: a layer, a pass.
  void at(std::string_view where) {
    const std::lock_guard lock(mutex_);
    ++pulse_.steps;
    pulse_.where = where;
  }

  /// The collective that goes on has come further.
  void step() {
    const std::lock_guard lock(mutex_);
    ++pulse_.steps;
  }

  /// A collective begins. Returns its number, from 1.
  std::uint64_t begin(std::string_view where) {
    const std::lock_guard lock(mutex_);
    pulse_.waiting = true;
    pulse_.where = where;
    return ++pulse_.operations;
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ++pulse_.steps;
    pulse_.waiting = false;
  }

  Pulse read() const {
    const std::lock_guard lock(mutex_);
    return pulse_;
  }

 private:
  mutable std::mutex mutex_;
  Pulse pulse_;
};

}  // namespace rl
