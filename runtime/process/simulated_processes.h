// The seam below child processes. In production there is no SimulatedProcesses, and they are the
// machine's own; a simulation (core/simulation.h) puts one in their place.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/core/result.h"
#include "runtime/process/child_process.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// Everything is called in the simulation's one thread, by the process that it is running at that
/// moment.
class SimulatedProcesses {
 public:
  /// As ChildProcess::start.
  virtual Result<std::unique_ptr<ChildProcess>> start_process(EventLoop& loop,
                                                              const ProcessSpec& spec,
                                                              ProcessHandlers handlers) = 0;

 protected:
  ~SimulatedProcesses() = default;
};

namespace simulation_detail {
inline std::atomic<SimulatedProcesses*> installed_processes{nullptr};
}

/// Null but in a simulation. Cost: one load.
inline SimulatedProcesses* simulated_processes() {
  return simulation_detail::installed_processes.load(std::memory_order_relaxed);
}

/// With install_simulation().
inline void install_simulated_processes(SimulatedProcesses* processes) {
  simulation_detail::installed_processes.store(processes, std::memory_order_relaxed);
}

}  // namespace runtime
