// Going into the background once it is sure that there is something to run there.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// What a background process tells the command that started it: exactly once, that it is up or why
/// not.
class StartReport {
 public:
  /// Prints to this process's own stdout and stderr: for running in the foreground.
  StartReport() = default;
  explicit StartReport(FileDescriptor pipe) : pipe_(std::move(pipe)), background_(true) {}

  /// `text` becomes the command's stdout.
  void up(const std::string& text);
  void failed(const Status& why);
  bool background() const { return background_; }

 private:
  FileDescriptor pipe_;
  bool background_ = false;
};

/// Forks. `body` runs in its own session, without a terminal and with no descriptors but stdin,
/// stdout and stderr. Its result is that process's exit code. The caller waits for the report and
/// returns the command's exit code: 0 or 1. Call it before any thread is started.
int run_in_background(const std::function<int(StartReport& report)>& body);

/// For process 1 of a PID namespace, in a container say: `body` runs in a child, whose exit code is
/// returned. This process passes signals on to it, and reaps what loses its parent, which no other
/// process does there. Call it before any thread is started.
int run_below_init(const std::function<int()>& body);

/// Points stdout and stderr to the end of this file and stdin to /dev/null.
Status redirect_output(const std::string& file);

}  // namespace runtime
