#include "runtime/core/clock.h"

#include "runtime/core/simulation.h"

namespace runtime {

Deadline steady_now() {
  const Simulation* simulated = simulation();
  return simulated ? simulated->now() : std::chrono::steady_clock::now();
}

std::uint64_t unix_milliseconds() {
  using Milliseconds = std::chrono::milliseconds;
  if (const Simulation* simulated = simulation())
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<Milliseconds>(simulated->now().time_since_epoch()).count());
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<Milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace runtime
