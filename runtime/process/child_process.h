// ChildProcess: a process that a node started, its output, and how it ended.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/process/death_cause.h"
#include "runtime/process/job_user.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct ProcessSpec {
  std::string program;            // a path, or a name to look up in PATH
  std::vector<std::string> argv;  // argv[0] first
  std::vector<std::string>
      env;                  // "NAME=value": added to this process's environment, later ones win
  std::string working_dir;  // empty: this process's
  std::optional<JobUser>
      user{};              // whom to become, with an environment of that user's own; only root can
  std::string input = {};  // what it reads from its stdin; empty: nothing
  /// Its end is the end of all that it started, in their own sessions and groups too. end() gives
  /// all of it the time, and all of it ends if this process is killed (supervisor.h).
  bool supervised = false;
};

struct ProcessHandlers {
  /// Bytes as they were written. Runs on the loop.
  std::function<void(bool is_stderr, std::string_view bytes)> on_output;
  /// The process is reaped and its output read (up to a short wait, should a grandchild keep the
  /// pipe open). Runs once, on the loop; the ChildProcess may be destroyed in it.
  std::function<void(DeathCause cause)> on_exit;
};

/// Runs in its own process group, which is killed when the process ends, and gets SIGKILL when
/// this process dies. Use it on the loop only. The kernel ties that signal to the thread that
/// starts the child, which must live as long as the process. A node's loop runs on its main thread.
class ChildProcess {
 public:
  /// Errors: kNotFound and kInvalidArgument name the program that cannot be executed, or the
  /// working folder; kResourceExhausted: too many processes or descriptors.
  static Result<std::unique_ptr<ChildProcess>> start(EventLoop& loop, const ProcessSpec& spec,
                                                     ProcessHandlers handlers);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills the group if it still runs; on_exit is not called then.
  virtual ~ChildProcess() = default;

  virtual std::int32_t pid() const = 0;
  virtual bool running() const = 0;
  /// Sends a signal to the whole group.
  virtual void signal(int number) = 0;
  /// SIGTERM to the group now, SIGKILL to what is left of it after `grace`; a grace of zero kills
  /// at once. Under a supervisor, both go to all that the process started. The first process may
  /// end before others, as a shell does; on_exit waits for the last one.
  virtual void end(std::chrono::milliseconds grace) = 0;
  /// Back-pressure: while paused its output is not read, so that it blocks when the pipe is full.
  virtual void pause_output(bool paused) = 0;

 protected:
  ChildProcess() = default;
};

}  // namespace runtime
