#include "runtime/core/end_process.h"

#include <unistd.h>

#include <csignal>

#include "runtime/core/simulation.h"

namespace runtime {

void end_process(int signal) {
  if (Simulation* simulated = simulation()) return simulated->end_process();
  if (signal != 0) ::raise(signal);
  ::_exit(0);
}

}  // namespace runtime
