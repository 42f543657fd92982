#include "runtime/core/clock.h"

#include "runtime/core/simulation.h"

namespace runtime {

Deadline steady_now() {
  const Simulation* simulated = simulation();
  return simulated ? simulated->now() : std::chrono::steady_clock::now();
}

std::chrono::milliseconds unix_now() {
  const Simulation* simulated = simulation();
  if (simulated) return std::chrono::duration_cast<std::chrono::milliseconds>(simulated->now().time_since_epoch());
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace runtime
