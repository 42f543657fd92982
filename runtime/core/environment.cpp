#include "runtime/core/environment.h"

#include <cstdlib>

#include "runtime/core/simulation.h"

namespace runtime {

const char* environment_variable(const char* name) {
  const Simulation* simulated = simulation();
  return simulated ? simulated->variable(name) : std::getenv(name);
}

}  // namespace runtime
