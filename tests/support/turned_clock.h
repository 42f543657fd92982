// TurnedClock: a clock that stands still until the test turns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/simulation.h"
#include "runtime/process/simulated_processes.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/simulated_network.h"

namespace support {

/// The clock of the runtime while it lives; made before the loops that run on it, of which there is
/// one at most. Nothing else is simulated: a part that asks for more has no business with it, or
/// its test derives what that is.
class TurnedClock : public runtime::Simulation,
                    public runtime::SimulatedNetwork,
                    public runtime::SimulatedProcesses {
 public:
  using Duration = runtime::Deadline::duration;

  TurnedClock() {
    runtime::install_simulation(this);
    runtime::install_simulated_network(this);
    runtime::install_simulated_processes(this);
  }
  virtual ~TurnedClock() {
    runtime::install_simulated_processes(nullptr);
    runtime::install_simulated_network(nullptr);
    runtime::install_simulation(nullptr);
  }
  TurnedClock(const TurnedClock&) = delete;
  TurnedClock& operator=(const TurnedClock&) = delete;

  Time now() const override { return now_; }

  /// Lets the time pass: timers ring in their order, each at its time, and the loop's handlers run.
  void turn(Duration by) {
    const Time end = now_ + by;
    run_handlers();
    while (!alarms_.empty() && alarms_.begin()->first.first <= end) {
      auto alarm = alarms_.extract(alarms_.begin());
      now_ = std::max(now_, alarm.key().first);
      alarm.mapped()();
      run_handlers();
    }
    now_ = end;
  }
  /// Runs what is ready now.
  void settle() { turn({}); }

  std::uint64_t call_at(Time at, std::function<void()> action) override {
    alarms_.emplace(std::pair(at, ++last_id_), std::move(action));
    return last_id_;
  }
  void forget(std::uint64_t id) override {
    std::erase_if(alarms_, [&](const auto& alarm) { return alarm.first.second == id; });
  }
  void add_loop(runtime::EventLoop& loop) override {
    CHECK(loop_ == nullptr);
    loop_ = &loop;
  }
  void remove_loop(runtime::EventLoop& loop) override {
    CHECK(loop_ == &loop);
    loop_ = nullptr;
  }
  const char* variable(const char*) const override { return nullptr; }

  void fill_random(std::span<std::byte>) override { CHECK(false); }
  std::uint64_t start_thread(std::function<void()>) override {
    CHECK(false);
    return 0;
  }
  void join_thread(std::uint64_t) override { CHECK(false); }
  bool wait(runtime::EventLoop&, const runtime::Event&, Time) override {
    CHECK(false);
    return false;
  }
  std::uint64_t use_disk(std::function<void(int error)>) override {
    CHECK(false);
    return 0;
  }
  void connect(const runtime::Endpoint&, std::function<void(int fd, int error)>) override {
    CHECK(false);
  }
  int listen(runtime::Endpoint&, std::function<void(int fd)>) override {
    CHECK(false);
    return 0;
  }
  void stop_listening(const runtime::Endpoint&) override { CHECK(false); }
  void end_process() override { CHECK(false); }
  runtime::Result<std::unique_ptr<runtime::ChildProcess>> start_process(
      runtime::EventLoop&, const runtime::ProcessSpec&, runtime::ProcessHandlers) override {
    CHECK(false);
    return runtime::unimplemented("no processes");
  }

 private:
  void run_handlers() {
    while (loop_ != nullptr && loop_->step()) {
    }
  }

  Time now_ = Time() + std::chrono::hours(1000);
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> alarms_;
  std::uint64_t last_id_ = 0;
  runtime::EventLoop* loop_ = nullptr;
};

}  // namespace support
