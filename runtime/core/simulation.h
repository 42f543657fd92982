// The seam below the runtime: time, chance, threads, disks. In production there is no Simulation,
// and each is the machine's own. tests/sim puts one in their place. Then the production code of a
// whole cluster runs in one thread, the same way for the same seed. The network has its own seam
// (runtime/transport/simulated_network.h), and so do child processes
// (runtime/process/simulated_processes.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace runtime {

/// Everything is called in the simulation's one thread, by the process that it is running at that
/// moment.
class Simulation {
 public:
  using Time = std::chrono::steady_clock::time_point;

  virtual Time now() const = 0;
  /// Calls `action` once the time has come, unless it is forgotten before. Never from inside of the
  /// call.
  virtual std::uint64_t call_at(Time at, std::function<void()> action) = 0;
  virtual void forget(std::uint64_t id) = 0;

  virtual void fill_random(std::span<std::byte> out) = 0;
  /// The running process's environment variable; null: it has none of that name.
  virtual const char* variable(const char* name) const = 0;

  virtual std::uint64_t start_thread(std::function<void()> body) = 0;
  /// Waits until the thread has ended.
  virtual void join_thread(std::uint64_t id) = 0;

  /// Calls `operation` when the disk comes to it, with the error number that it is to fail with; 0:
  /// it may go on. Forgotten like an alarm.
  virtual std::uint64_t use_disk(std::function<void(int error)> operation) = 0;

  /// Ends the running process as SIGKILL does, once the call that is under way has returned.
  virtual void end_process() = 0;

 protected:
  ~Simulation() = default;
};

namespace simulation_detail {
inline std::atomic<Simulation*> installed{nullptr};
}

/// Null but in a simulation. Cost: one load.
inline Simulation* simulation() {
  return simulation_detail::installed.load(std::memory_order_relaxed);
}

/// Before anything of the runtime is made, and (with null) after all of it is gone.
inline void install_simulation(Simulation* simulation) {
  simulation_detail::installed.store(simulation, std::memory_order_relaxed);
}

}  // namespace runtime
