// HeadChild: the head's process, as the node next to it sees it. Starts it, and starts it again
// when it dies.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/node/head_restart.h"
#include "runtime/process/child_process.h"
#include "runtime/process/held_program.h"
#include "runtime/process/log_file.h"
#include "runtime/process/process_output.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/file_descriptor.h"
#include "runtime/transport/keyring.h"

namespace runtime {

class LogRoom;

struct HeadChildOptions {
  std::string program;  // starling
  ClusterId cluster;
  NodeId node;
  std::filesystem::path session_dir;  // its log goes to logs/head.log there
  std::filesystem::path socket;
  std::filesystem::path journal;  // empty: none
  bool durable = false;           // the journal outlives this node
  Keyring token;
  LogRoom* logs = nullptr;  // null: the log has its own bound only
  std::chrono::milliseconds restart_delay_first{20};
  std::chrono::milliseconds restart_delay_max = kHeadRestartMax;
};

/// Lives on the event loop.
class HeadChild {
 public:
  /// `failed` hears when the head could not be started at all (exit code 3: its journal cannot be
  /// used, for instance), with what it said.
  HeadChild(EventLoop& loop, HeadChildOptions options, std::function<void(Status why)> failed);
  HeadChild(const HeadChild&) = delete;
  HeadChild& operator=(const HeadChild&) = delete;
  ~HeadChild();

  /// The first start. Errors: as ChildProcess::start.
  Status start();
  /// It works: from now on it is started again whatever it dies of, and however often that fails.
  /// Who waits for it decides for how long. What kept it from starting is over.
  void confirm() {
    confirmed_ = true;
    trouble_ = {};
  }
  /// Why the last attempt to start it again failed, until one has worked; success: nothing is known
  /// to keep it from starting.
  const Status& trouble() const { return trouble_; }
  /// Ends it in order, so that it closes its journal, and starts it no more. `done` when it is
  /// gone; of several calls each.
  void end(std::function<void()> done);
  std::int32_t pid() const { return process_ ? process_->pid() : 0; }

  static constexpr int kExitUnusable = 3;

 private:
  void on_exit(const DeathCause& cause);
  void start_later();

  EventLoop& loop_;
  const HeadChildOptions options_;
  const HeldProgram program_;
  FileDescriptor token_;  // in memory: the session's file may be gone when the head dies
  const std::function<void(Status)> failed_;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<LogFile> log_;
  Tail error_tail_;
  std::vector<std::function<void()>> on_ended_;
  bool running_ = false;  // until its exit is told
  bool confirmed_ = false;
  bool ending_ = false;
  Status trouble_;
  Deadline started_ = Deadline::min();
  std::chrono::milliseconds delay_{0};
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace runtime
