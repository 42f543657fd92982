// World: the machine below a simulated cluster. Its clock, its dice, its processes and their
// threads, and whose turn it is.
//
// One thread. A step runs one handler of one process's event loop, or one thread of a process until
// it waits, or something whose time has come. The seed chooses among all that could run. Time
// passes a little with each step, and jumps when nothing can run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fiber.h"
#include "network.h"
#include "random.h"
#include "runtime/core/simulation.h"
#include "runtime/process/simulated_processes.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/simulated_network.h"

namespace sim {

using namespace std::chrono_literals;

/// How a process's connections end when it does.
enum class Farewell {
  kOrderly,  // what it wrote still arrives, then the connection ends: a process that the kernel
             // cleans up after
  kReset,    // what is on its way is lost
  kSilence,  // nothing ever comes again: its machine is gone
};

/// One simulated operating-system process.
struct Process {
  Process(std::string process_name, int process_id)
      : name(std::move(process_name)), id(process_id) {}

  const std::string name;
  const int id;
  std::map<std::string, std::string> variables;
  /// Gets the process's main thread to return, after its connections were cut. Optional.
  std::function<void()> on_crash;
  std::function<void()> on_end;  // its main thread has returned
  runtime::WorkerId worker;      // of a worker process
  bool crashed = false;
  bool ended = false;
  runtime::Deadline paused_until =
      runtime::Deadline::min();             // SIGSTOP; or a machine that is busy elsewhere
  std::chrono::microseconds paused_for{0};  // in all
};

class World final : public runtime::Simulation,
                    public runtime::SimulatedNetwork,
                    public runtime::SimulatedProcesses {
 public:
  explicit World(std::uint64_t seed, bool trace = false);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  Random& random() { return random_; }
  Network& network() { return network_; }
  /// Faults that the network and disks make by themselves happen only while this is set.
  bool faults = false;
  /// Of this run, named otherwise in the next: notes say DIR for it.
  std::string folder;
  /// Whether disks fail then: an operation in this many does. 0: never.
  std::uint64_t disk_fails = 0;

  // -- Processes

  /// A process whose main thread runs `main`.
  std::shared_ptr<Process> start(std::string name, std::map<std::string, std::string> variables,
                                 std::function<void()> main);
  /// Ends it at this moment, wherever it is: nothing that it does from now on is seen.
  /// Its threads return within the call, for which no time passes. Not from inside of a thread.
  void crash(Process& process, Farewell farewell);
  /// It runs nothing for a while.
  void pause(Process& process, std::chrono::microseconds time);
  /// As call_at(), but not on behalf of the process that runs now: it happens even if that one
  /// ends.
  void call_later(std::chrono::microseconds delay, std::function<void()> action);
  /// Whose code runs now; null: the world's own.
  Process* current() const { return current_; }
  const std::vector<std::shared_ptr<Process>>& processes() const { return processes_; }

  /// Ends all that still run. Before what their mains use goes.
  void end();

  // -- For code in a process's thread

  /// Waits until it holds or the time has come, or the process crashed.
  void wait_until(std::function<bool()> condition,
                  runtime::Deadline deadline = runtime::Deadline::max());
  void sleep(std::chrono::microseconds time);

  // -- Running

  /// One step; false: nothing will ever happen again.
  bool step();
  /// Until it holds; false: the time came first, or nothing happens any more.
  bool run_until(const std::function<bool()>& condition, runtime::Deadline deadline);
  std::uint64_t steps() const { return steps_; }
  /// Timers, and whatever else is to happen.
  std::size_t alarms() const { return alarms_.size(); }

  /// Goes into the trace: the same for every run of a seed.
  void note(std::string what);
  std::uint64_t trace_hash() const { return hash_; }
  bool traces() const { return trace_; }
  /// Since the world began.
  std::chrono::microseconds age() const;
  /// A broken invariant. The first one is kept.
  void fail(const std::string& why);
  const std::string& failure() const { return failure_; }

  // -- Simulation

  runtime::Deadline now() const override { return now_; }
  std::uint64_t call_at(runtime::Deadline at, std::function<void()> action) override;
  void forget(std::uint64_t id) override;
  void fill_random(std::span<std::byte> out) override;
  const char* variable(const char* name) const override;
  std::uint64_t start_thread(std::function<void()> body) override;
  void join_thread(std::uint64_t id) override;
  std::uint64_t use_disk(std::function<void(int)> operation) override;
  void end_process() override;

  // -- SimulatedNetwork

  void add_loop(runtime::EventLoop& loop) override;
  void remove_loop(runtime::EventLoop& loop) override;
  bool wait(runtime::EventLoop& loop, const runtime::Event& event,
            runtime::Deadline deadline) override;
  void connect(const runtime::Endpoint& to, std::function<void(int, int)> done) override;
  int listen(runtime::Endpoint& at, std::function<void(int)> accepted) override;
  void stop_listening(const runtime::Endpoint& at) override;

  // -- SimulatedProcesses

  runtime::Result<std::unique_ptr<runtime::ChildProcess>> start_process(
      runtime::EventLoop& loop, const runtime::ProcessSpec& spec,
      runtime::ProcessHandlers handlers) override;

  /// What a child process of a node runs.
  std::function<void()> worker_main;
  /// What its head's process runs.
  std::function<void(const std::vector<std::string>& argv)> head_main;

 private:
  struct Thread {
    std::uint64_t id;
    Process* process;
    std::unique_ptr<Fiber> fiber;
    std::function<bool()> ready;  // empty: now
    runtime::Deadline deadline = runtime::Deadline::max();
  };
  struct Loop {
    runtime::EventLoop* loop;
    Process* process;
    bool idle = false;  // had nothing to run when it was last asked
  };
  struct Alarm {
    Process* process;
    std::function<void()> action;
  };

  Thread& add_thread(Process* process, std::function<void()> body);
  void block(std::function<bool()> ready, runtime::Deadline deadline);
  bool can_run(const Thread& thread) const;
  bool is_paused(const Process* process) const;
  void run_thread(std::size_t index);
  bool run_loop(std::size_t index);
  void run_alarm();
  void wake(const Process* process);
  void finish(Process& process);
  /// A step of this process alone (null: of all).
  bool run_something(const Process* only);

  Random random_;
  const bool trace_;
  runtime::Deadline now_;
  const runtime::Deadline began_;
  std::map<std::pair<runtime::Deadline, std::uint64_t>, Alarm> alarms_;
  std::unordered_map<std::uint64_t, runtime::Deadline> alarm_times_;
  std::vector<std::shared_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Loop> loops_;
  Process* current_ = nullptr;
  Thread* thread_ = nullptr;  // that runs now
  std::uint64_t next_id_ = 1;
  std::uint64_t steps_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
  std::string failure_;
  Network network_;
};

}  // namespace sim
