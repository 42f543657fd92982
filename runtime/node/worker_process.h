// WorkerProcess: the process of one worker, as its node sees it: its start, output, connection and
// end. What runs in it is the business of WorkerPool.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"
#include "runtime/process/child_process.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/log_file.h"
#include "runtime/process/process_output.h"
#include "runtime/process/worker_environment.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct WorkerProcessSpec {
  WorkerEnvironment identity;
  std::string program;
  std::shared_ptr<const FileLock> program_in_use;  // keeps it in the node's cache; may be null
  std::string name;                                // argv[0]; empty: the program
  std::string working_dir;                         // where there is none: the session's folder
  Environment env;
  std::uint32_t threads = 1;  // that it may compute with
  LogRoom* logs = nullptr;    // null: its log has its own bound only
};

/// Lives on the event loop.
class WorkerProcess {
 public:
  struct Callbacks {
    std::function<void(LogLines lines)> on_log;
    std::function<void(DeathCause cause)> on_exit;  // as ProcessHandlers::on_exit
  };

  /// Errors: as ChildProcess::start.
  static Result<std::unique_ptr<WorkerProcess>> start(EventLoop& loop, WorkerProcessSpec spec,
                                                      Callbacks callbacks);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  WorkerId id() const { return identity_.worker; }
  JobId job() const { return identity_.job; }
  pid_t pid() const { return process_->pid(); }
  std::chrono::nanoseconds age() const { return steady_now() - started_; }
  /// What the addresses of its actors say of the process.
  ActorAddress address() const;
  /// What its lines of output are said to come from.
  void set_log_name(std::string name) { log_name_ = std::move(name); }

  /// Null until it has connected.
  const std::shared_ptr<Channel>& channel() const { return channel_; }
  bool is_connected() const { return channel_ && !channel_->closed(); }
  void connect(std::shared_ptr<Channel> channel) { channel_ = std::move(channel); }
  /// Without its connection it is of no use: it gets a moment to end by itself.
  void disconnect(const std::string& why, std::chrono::milliseconds grace);

  /// SIGTERM, after a grace SIGKILL. The first reason counts.
  void end(const std::string& reason, std::chrono::milliseconds grace);
  /// It has been asked to end by itself.
  void expect_end(const std::string& reason) { end_reason_ = reason; }
  /// It has not, in time.
  void kill_late();
  bool is_ending() const { return !end_reason_.empty(); }
  /// The last line of its stderr.
  std::string last_error() const { return error_tail_.last_lines(1); }

  /// After on_exit: hands over the last of its output, lets go of its connection and socket.
  /// Returns why it ended, as its node knows: with the end of its stderr where that says more.
  DeathCause finish(DeathCause cause);

 private:
  WorkerProcess(WorkerProcessSpec spec, Callbacks callbacks);
  ProcessSpec process_spec(const WorkerProcessSpec& spec) const;
  void on_output(bool is_stderr, std::string_view bytes);
  void send_lines(bool is_stderr, std::vector<std::string> lines);

  const WorkerEnvironment identity_;
  const Callbacks callbacks_;
  const std::shared_ptr<const FileLock> program_in_use_;
  const Deadline started_ = steady_now();
  std::unique_ptr<ChildProcess> process_;
  std::shared_ptr<Channel> channel_;
  std::string log_name_;
  std::string lost_;        // why its connection ended
  std::string end_reason_;  // once its node ends it
  LogFile log_;
  LineSplitter lines_[2];
  Tail error_tail_;
};

}  // namespace runtime
