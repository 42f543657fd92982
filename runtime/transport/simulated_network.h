// The seam below event loops and connections. In production there is no SimulatedNetwork, and both
// are the machine's own; a simulation (core/simulation.h) puts one in their place.
#pragma once

#include <atomic>
#include <functional>

#include "runtime/core/clock.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

class Event;
class EventLoop;

/// Everything is called in the simulation's one thread, by the process that it is running at that
/// moment.
class SimulatedNetwork {
 public:
  /// From now on the simulation runs the loop's handlers (EventLoop::step); no thread of the loop's
  /// own does.
  virtual void add_loop(EventLoop& loop) = 0;
  virtual void remove_loop(EventLoop& loop) = 0;
  /// EventLoop::run_until for the calling thread, in which other threads and loops go on.
  virtual bool wait(EventLoop& loop, const Event& event, Deadline deadline) = 0;

  /// `done` gets a connected stream socket, or -1 and an error number.
  virtual void connect(const Endpoint& to, std::function<void(int fd, int error)> done) = 0;
  /// Calls `accepted` with each connection. A TCP port of 0 becomes the real one. Returns an error
  /// number; 0: it listens.
  virtual int listen(Endpoint& at, std::function<void(int fd)> accepted) = 0;
  virtual void stop_listening(const Endpoint& at) = 0;

 protected:
  ~SimulatedNetwork() = default;
};

namespace simulation_detail {
inline std::atomic<SimulatedNetwork*> installed_network{nullptr};
}

/// Null but in a simulation. Cost: one load.
inline SimulatedNetwork* simulated_network() {
  return simulation_detail::installed_network.load(std::memory_order_relaxed);
}

/// With install_simulation().
inline void install_simulated_network(SimulatedNetwork* network) {
  simulation_detail::installed_network.store(network, std::memory_order_relaxed);
}

}  // namespace runtime
