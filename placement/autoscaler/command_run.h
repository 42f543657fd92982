// CommandRun: one run of a command with a time limit. Its result is its stdout up to a size, the
// end of its stderr, and its exit code.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/process/child_process.h"
#include "runtime/process/process_output.h"

namespace placement {

struct CommandOutcome {
  runtime::Status status;  // success: it ran to its end in time, whatever its exit code
  int exit_code = -1;
  std::string output;
  std::string error_tail;  // its last lines on stderr
};

/// Lives on the event loop. Destroyed before its end, it kills the command and `done` is not
/// called.
class CommandRun {
 public:
  static constexpr std::size_t kOutputBytesMax = 1 << 20;

  /// `done` runs once, on the loop, never from inside the call; the CommandRun may be destroyed in
  /// it. kDeadlineExceeded: it ran for longer than `limit`, and was ended.
  CommandRun(runtime::EventLoop& loop, runtime::ProcessSpec spec, std::chrono::milliseconds limit,
             std::function<void(CommandOutcome)> done);
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;
  ~CommandRun();

 private:
  void on_output(bool is_stderr, std::string_view bytes);
  void end(const runtime::DeathCause& cause);

  const std::string program_;
  const std::chrono::milliseconds limit_;
  std::function<void(CommandOutcome)> done_;
  std::unique_ptr<runtime::ChildProcess> process_;
  runtime::Timer timer_;
  std::string output_;
  runtime::Tail error_tail_;
  runtime::Status why_ended_;
  runtime::Lifetime lifetime_;
};

}  // namespace placement
