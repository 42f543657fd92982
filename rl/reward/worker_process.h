// A child process that scores: its own process group, one socket for the protocol, its output kept
// apart. It never outlives its owner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/process/spawned_process.h"
#include "runtime/transport/file_descriptor.h"

namespace rl {

/// The ends that one side has of the channels between a worker process and its owner.
struct WorkerEnds {
  runtime::FileDescriptor socket;
  runtime::FileDescriptor life;  // hangs up when the owner is gone; nothing is written to it
  runtime::FileDescriptor output;
};

/// A resource; one thread. The child finds the socket at file descriptor 3, over which lines go
/// both ways. At 4 it finds the end of a pipe that hangs up when the owner is gone. It is to be a
/// keeper (PR_SET_CHILD_SUBREAPER) that does its work in a child. What is orphaned below stays its
/// descendant, which is ended here, and by the keeper when the owner is gone. It also says in its
/// environment who it is (STARLING_SCORER, its number), by which what it starts is found where it
/// keeps nothing. Other children of the owner are left alone. Its stdin is empty; what it writes to
/// stdout and stderr is read here, line by line.
class WorkerProcess {
 public:
  /// Errors: the program cannot be started, no file descriptors are left.
  static runtime::Result<std::unique_ptr<WorkerProcess>> start(
      const std::vector<std::string>& command);

  /// A copy of this process, a child of ours like it. The program has to make one when it gets a
  /// byte over its socket, with the descriptors of socket, pipe and output. It answers by {"pid":
  /// NUMBER}. Errors: it does not, within two seconds.
  runtime::Result<std::unique_ptr<WorkerProcess>> copy();

  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  /// Ends it by SIGKILL, and with it what it started, in their own groups and sessions too.
  ~WorkerProcess();

  pid_t pid() const { return process_.pid(); }
  int socket() const { return ends_.socket.get(); }
  int output() const { return ends_.output.get(); }  // -1 once it has ended
  /// Readable once the process has died; -1 where the kernel has no such thing.
  int death() const { return death_.get(); }
  bool wants_to_write() const { return !to_send_.empty(); }

  /// Queues a line and sends what the socket takes.
  void send_line(std::string_view line);
  void flush();

  /// Reads what is there. False: the child is gone, or its line has no end.
  bool receive();
  std::optional<std::string> next_line();

  /// What it wrote to stdout and stderr since the last call, in whole lines; `all` takes an
  /// unfinished one too.
  std::vector<std::string> output_lines(bool all = false);

  /// Whether it has died. `describe_death()` says how: "was killed by signal 9", "ended with status
  /// 1".
  bool has_died();
  /// Waits a moment for it: descriptors close a little before a process is dead.
  void await_death();
  std::string describe_death() const;

 private:
  WorkerProcess(runtime::SpawnedProcess process, WorkerEnds ends);

  runtime::SpawnedProcess process_;
  WorkerEnds ends_;
  runtime::FileDescriptor death_;
  std::optional<runtime::DeathCause> cause_;  // none: it has not died, or that was not seen yet
  std::string to_send_;
  std::string received_;
  std::string printed_;
};

}  // namespace rl
