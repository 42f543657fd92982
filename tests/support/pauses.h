// Deliberate pauses in tests. Every other wait is for an event: eventually(), a Gate, a latch, a
// message (tests/tidy/pauses.sh checks this).
#pragma once

#include <chrono>
#include <thread>

namespace support {

/// Simulates work that takes some time, in a method, a task or a constructor.
template <class Rep, class Period>
void work_for(std::chrono::duration<Rep, Period> time) {
  std::this_thread::sleep_for(time);
}

/// Sets the rate of a load or of faults, by a pause between two steps.
template <class Rep, class Period>
void pace(std::chrono::duration<Rep, Period> time) {
  std::this_thread::sleep_for(time);
}

/// Keeps a state whose duration is what the test is about: a fault, a load or silence, or the
/// expiry of a time limit. A comment at each use gives the reason.
template <class Rep, class Period>
void hold_for(std::chrono::duration<Rep, Period> time) {
  std::this_thread::sleep_for(time);
}

}  // namespace support
