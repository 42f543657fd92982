// PlayedProcesses: child processes that the test plays, on a clock that it turns.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/turned_clock.h"

namespace support {

/// A start runs nothing: what the process writes, and how it ends, is what the test says.
class PlayedProcesses final : public TurnedClock {
 public:
  struct Process {
    runtime::EventLoop* loop = nullptr;
    runtime::ProcessSpec spec;
    runtime::ProcessHandlers handlers;
    bool is_kept = true;  // its ChildProcess is there still
    bool has_ended = false;
    bool is_paused = false;
    std::vector<std::chrono::milliseconds>
        ends;  // that it was told to come to, each with its grace
  };

  runtime::Result<std::unique_ptr<runtime::ChildProcess>> start_process(
      runtime::EventLoop& loop, const runtime::ProcessSpec& spec,
      runtime::ProcessHandlers handlers) override {
    if (!refusal.ok()) return refusal;
    auto process = std::make_shared<Process>();
    process->loop = &loop;
    process->spec = spec;
    process->handlers = std::move(handlers);
    processes.push_back(process);
    const auto pid = static_cast<std::int32_t>(1000 + processes.size());
    return std::unique_ptr<runtime::ChildProcess>(std::make_unique<Child>(process, pid));
  }

  void write(std::size_t at, std::string bytes, bool is_stderr = false) {
    call(at, [bytes = std::move(bytes), is_stderr](Process& process) {
      process.handlers.on_output(is_stderr, bytes);
    });
  }
  void exit(std::size_t at, int code) {
    end(at,
        {.text = "exited with code " + std::to_string(code), .exit_code = code, .output_tail = ""});
  }
  void kill(std::size_t at, int signal, const std::string& text) {
    end(at, {.text = text, .signal = signal, .output_tail = ""});
  }

  std::vector<std::shared_ptr<Process>> processes;  // in the order of their starts
  runtime::Status refusal;                          // of starts

 private:
  class Child final : public runtime::ChildProcess {
   public:
    Child(std::shared_ptr<Process> process, std::int32_t pid)
        : process_(std::move(process)), pid_(pid) {}
    ~Child() override { process_->is_kept = false; }
    std::int32_t pid() const override { return pid_; }
    bool running() const override { return !process_->has_ended; }
    void signal(int) override { ADD_FAILURE() << "it is ended by end()"; }
    void end(std::chrono::milliseconds grace) override { process_->ends.push_back(grace); }
    void pause_output(bool paused) override { process_->is_paused = paused; }

   private:
    const std::shared_ptr<Process> process_;
    const std::int32_t pid_;
  };

  void end(std::size_t at, runtime::DeathCause cause) {
    call(at, [cause = std::move(cause)](Process& process) {
      process.has_ended = true;
      process.handlers.on_exit(cause);
    });
  }
  template <class Action>
  void call(std::size_t at, Action action) {
    ASSERT_LT(at, processes.size()) << "it was not started";
    const std::shared_ptr<Process> process = processes[at];
    process->loop->post([process, action = std::move(action)] {
      if (process->is_kept) action(*process);
    });
    settle();
  }
};

}  // namespace support
