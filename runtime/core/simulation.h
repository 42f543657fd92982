// The seam below the runtime: time, chance, threads, the network, disks, child processes. In
// production there is no Simulation, and each is the machine's own. tests/sim puts one in their
// place. Then the production code of a whole cluster runs in one thread, the same way for the same
// seed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/core/result.h"

namespace runtime {

class ChildProcess;
class Event;
class EventLoop;
struct Endpoint;
struct ProcessHandlers;
struct ProcessSpec;

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

  /// From now on the simulation runs the loop's handlers (EventLoop::step); no thread of the loop's
  /// own does.
  virtual void add_loop(EventLoop& loop) = 0;
  virtual void remove_loop(EventLoop& loop) = 0;
  /// EventLoop::run_until for the calling thread, in which other threads and loops go on.
  virtual bool wait(EventLoop& loop, const Event& event, Time deadline) = 0;

  /// Calls `operation` when the disk comes to it, with the error number that it is to fail with; 0:
  /// it may go on. Forgotten like an alarm.
  virtual std::uint64_t use_disk(std::function<void(int error)> operation) = 0;

  /// `done` gets a connected stream socket, or -1 and an error number.
  virtual void connect(const Endpoint& to, std::function<void(int fd, int error)> done) = 0;
  /// Calls `accepted` with each connection. A TCP port of 0 becomes the real one. Returns an error
  /// number; 0: it listens.
  virtual int listen(Endpoint& at, std::function<void(int fd)> accepted) = 0;
  virtual void stop_listening(const Endpoint& at) = 0;

  /// Ends the running process as SIGKILL does, once the call that is under way has returned.
  virtual void end_process() = 0;
  virtual Result<std::unique_ptr<ChildProcess>> start_process(EventLoop& loop,
                                                              const ProcessSpec& spec,
                                                              ProcessHandlers handlers) = 0;

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
