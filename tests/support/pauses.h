// The pauses that tests make on purpose. Everything else waits for an event: eventually(), a Gate,
// a latch, a message (tests/tidy/pauses.sh).
#pragma once

#include <chrono>
#include <thread>

namespace support {

/// Stands for work that takes a while, in what a test runs: a method, a task, a constructor.
template <class Rep, class Period>
void work_for(std::chrono::duration<Rep, Period> time) {
  std::this_thread::sleep_for(time);
}

/// Between two steps of a load or of faults, whose rate it sets.
template <class Rep, class Period>
void pace(std::chrono::duration<Rep, Period> time) {
  std::this_thread::sleep_for(time);
}

/// For a state whose length is what the test is about: how long a fault, a load or silence lasts,
/// or that a limit of time goes by. Its reason stands next to each use.
template <class Rep, class Period>
void hold_for(std::chrono::duration<Rep, Period> time) {
  std::this_thread::sleep_for(time);
}

}  // namespace support
