#include "runtime/core/clock.h"

#include "runtime/core/simulation.h"

namespace runtime {

Deadline steady_now() {
  const Simulation* simulated = simulation();
  return simulated ? simulated->now() : std::chrono::steady_clock::now();
}

}  // namespace runtime
