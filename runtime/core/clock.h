// The clock that deadlines are of.
#pragma once

#include <chrono>

namespace runtime {

using Deadline = std::chrono::steady_clock::time_point;

/// The machine's steady clock; in a simulation (core/simulation.h) its clock. Measuring how long something really took is not its business.
Deadline steady_now();

/// `duration` from now, saturating: `deadline_after(hours(1))`.
inline Deadline deadline_after(std::chrono::steady_clock::duration duration) {
  Deadline now = steady_now();
  return duration > Deadline::max() - now ? Deadline::max() : now + duration;
}

}  // namespace runtime
