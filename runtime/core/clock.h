// The clock of deadlines, which a simulation replaces.
#pragma once

#include <chrono>
#include <cstdint>

namespace runtime {

using Deadline = std::chrono::steady_clock::time_point;

/// The machine's steady clock; in a simulation (core/simulation.h) the simulated clock. Not for
/// measuring how long something really took.
Deadline steady_now();

/// Milliseconds since 1970, to show to people; in a simulation of the simulated clock.
std::uint64_t unix_milliseconds();

/// `duration` from now, saturating, in any unit: `deadline_after(hours(1))`,
/// `deadline_after(seconds::max())`.
template <class Rep, class Period>
Deadline deadline_after(std::chrono::duration<Rep, Period> duration) {
  using Seconds = std::chrono::duration<double>;
  const Deadline now = steady_now();
  // Compared as seconds, since the conversion to nanoseconds might not fit; so a second short of
  // the end counts as the end.
  const Seconds most = Seconds(Deadline::max() - now) - Seconds(1);
  if (Seconds(duration) < -most) return Deadline::min();
  if (!(Seconds(duration) < most)) return Deadline::max();
  return now + std::chrono::ceil<Deadline::duration>(duration);
}

}  // namespace runtime
