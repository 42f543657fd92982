// WaitStep: one wait of a call for another, as processes tell each other of it to find cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace runtime {

struct WaitStep {
  /// Longer chains are not followed.
  static constexpr std::size_t kStepsMax = 32;

  std::uint64_t session = 0;  // of the process that waits: Process::session()
  std::uint64_t number = 0;   // of the wait in it
  std::string waiting;        // "Counter 7f3a0011: add", the call that runs
  std::string awaited;        // the call that it waits for
  /// The wait or the awaited call has its own time limit, so that the program may go on.
  bool bounded = false;

  bool is_same_wait(const WaitStep& other) const {
    return session == other.session && number == other.number;
  }
  bool operator==(const WaitStep&) const = default;
};

}  // namespace runtime
