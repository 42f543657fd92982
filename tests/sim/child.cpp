#include "child.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "world.h"

namespace sim {

namespace {

using runtime::ProcessHandlers;

/// Shared with what the world still has to do for it.
struct State {
  std::shared_ptr<Process> process;    // null until it has been executed
  runtime::EventLoop* loop = nullptr;  // null once the owner is gone
  ProcessHandlers handlers;
  bool killed = false;
  bool ended = false;
};
using StatePtr = std::shared_ptr<State>;

void tell_end(World& world, const StatePtr& state) {
  world.call_later(world.random().micros(20, 3000), [state] {
    if (!state->loop || std::exchange(state->ended, true)) return;
    runtime::DeathCause cause;
    cause.pid = ::getpid();
    if (state->killed || (state->process && state->process->crashed)) {
      cause.signal = SIGKILL;
      cause.text = "killed by SIGKILL";
    } else {
      cause.exit_code = 0;
      cause.text = "exited with code 0";
    }
    state->loop->post([state, cause] {
      if (auto on_exit = std::move(state->handlers.on_exit)) on_exit(cause);
    });
  });
}

void kill(World& world, const StatePtr& state) {
  if (std::exchange(state->killed, true)) return;
  if (!state->process) return tell_end(world, state);
  world.crash(*state->process, world.random().one_in(2) ? Farewell::kOrderly : Farewell::kReset);
}

class SimulatedChild final : public runtime::ChildProcess {
 public:
  SimulatedChild(World& world, StatePtr state) : world_(world), state_(std::move(state)) {}
  ~SimulatedChild() override {
    state_->loop = nullptr;
    state_->handlers = {};
    end(std::chrono::milliseconds(0));
  }

  // Socket pairs say that this process is at the other end, as the kernel does of a real worker.
  std::int32_t pid() const override { return ::getpid(); }
  bool running() const override { return !state_->ended; }
  void signal(int) override { end(std::chrono::milliseconds(0)); }
  // A worker does nothing about SIGTERM: it ends by it.
  void end(std::chrono::milliseconds) override {
    world_.call_later(world_.random().micros(0, 500),
                      [&world = world_, state = state_] { kill(world, state); });
  }
  void pause_output(bool) override {}

 private:
  World& world_;
  const StatePtr state_;
};

}  // namespace

runtime::Result<std::unique_ptr<runtime::ChildProcess>> start_child(
    World& world, runtime::EventLoop& loop, const runtime::ProcessSpec& spec,
    ProcessHandlers handlers) {
  auto state = std::make_shared<State>();
  state->loop = &loop;
  state->handlers = std::move(handlers);
  std::map<std::string, std::string> variables;
  for (const std::string& line : spec.env) {
    const std::size_t equals = line.find('=');
    variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  // fork, exec and the dynamic linker take their time; now and then a machine is slow, or the
  // program does not come up at all.
  const auto delay = world.random().micros(500, world.random().one_in(10) ? 200'000 : 8'000);
  const bool stillborn = world.faults && world.random().one_in(40);
  world.call_later(delay, [&world, state, stillborn, argv = spec.argv,
                           variables = std::move(variables)] {
    if (state->killed) return;
    if (stillborn) return kill(world, state);
    if (argv.size() > 1 && argv[1] == "head") {
      state->process = world.start("head", variables, [&world, argv] { world.head_main(argv); });
    } else {
      const auto worker = variables.find("STARLING_WORKER");
      state->process =
          world.start("worker " + (worker == variables.end() ? "?" : worker->second.substr(0, 8)),
                      variables, world.worker_main);
    }
    state->process->on_end = [&world, state] { tell_end(world, state); };
  });
  return std::unique_ptr<runtime::ChildProcess>(std::make_unique<SimulatedChild>(world, state));
}

}  // namespace sim
