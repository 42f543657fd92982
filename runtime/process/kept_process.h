// KeptProcess: a process that a node keeps running: started again when it dies, until it is told to
// end.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/process/child_process.h"
#include "runtime/process/held_program.h"
#include "runtime/process/log_file.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct KeptProcessOptions {
  std::string name;  // for the log: "the autoscaler"
  ProcessSpec spec;
  std::filesystem::path log;  // what it writes
  LogRoom* logs = nullptr;    // null: the log has its own bound only
  std::chrono::milliseconds restart_delay_first{100};
  std::chrono::milliseconds restart_delay_max{5000};
};

/// Lives on the event loop.
class KeptProcess {
 public:
  KeptProcess(EventLoop& loop, KeptProcessOptions options);
  KeptProcess(const KeptProcess&) = delete;
  KeptProcess& operator=(const KeptProcess&) = delete;
  ~KeptProcess();

  /// The first start. Errors: as ChildProcess::start.
  Status start();
  /// Ends it (SIGTERM, after `grace` SIGKILL) and starts it no more; `done` runs when it has ended.
  void end(std::chrono::milliseconds grace, std::function<void()> done);

 private:
  void on_exit(const DeathCause& cause);

  EventLoop& loop_;
  const KeptProcessOptions options_;
  const HeldProgram program_;
  std::unique_ptr<LogFile> log_;
  std::unique_ptr<ChildProcess> process_;
  Deadline started_ = Deadline::min();
  std::chrono::milliseconds delay_{0};
  Timer timer_;
  bool ending_ = false;
  std::function<void()> ended_;
  Lifetime lifetime_;
};

}  // namespace runtime
