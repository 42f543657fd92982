// AutoscalerProcess: the process next to the head that adds and removes nodes.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/process/kept_process.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct AutoscalerProcessOptions {
  std::string program;                    // starling
  std::vector<std::string> arguments;     // of that
  std::string address;                    // HOST:PORT of the node
  std::filesystem::path session_dir;      // its log goes to logs/autoscaler.log there
  LogRoom* logs = nullptr;                // null: the log has its own bound only
  std::chrono::milliseconds stop_time{};  // how long it may take to remove what it has added
};

/// On the event loop. What was added for a cluster is removed with it.
class AutoscalerProcess {
 public:
  AutoscalerProcess(EventLoop& loop, AutoscalerProcessOptions options);
  AutoscalerProcess(const AutoscalerProcess&) = delete;
  AutoscalerProcess& operator=(const AutoscalerProcess&) = delete;

  /// Errors: as ChildProcess::start.
  Status start() { return process_->start(); }
  bool is_ending() const { return ending_; }
  /// `done` gets what it could not remove, in words; this object may be destroyed in it.
  void end(std::function<void(std::string left)> done);

 private:
  std::string read_what_is_left() const;

  EventLoop& loop_;
  const AutoscalerProcessOptions options_;
  const std::filesystem::path left_file_;
  std::unique_ptr<KeptProcess> process_;
  bool ending_ = false;
  Lifetime lifetime_;
};

}  // namespace runtime
