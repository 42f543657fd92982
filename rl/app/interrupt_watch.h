// Ctrl-C, SIGTERM, and a terminal or a pipe that is closed as a wish to stop where nothing is lost.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rl/checkpoint/resume.h"
#include "runtime/core/result.h"

namespace rl {

/// While it lives the first SIGINT, SIGTERM, SIGHUP (unless nohup had it ignored) or SIGPIPE is
/// noted, and told on stderr. The next SIGINT or SIGTERM ends the process as it always would. One
/// at a time in a process. A signal to a group of processes may reach a process twice: by itself,
/// and passed on by the command that started it (pass_on_signal()). These two count as one.
class InterruptWatch {
 public:
  /// `saves`: the step that is interrupted is followed by a checkpoint.
  explicit InterruptWatch(bool saves);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const;

  /// kCancelled: what a command that was interrupted after `step` of `steps` ends with, and how to
  /// go on.
  runtime::Status cut(std::int64_t step, std::int64_t steps, ResumeMode resume) const;

 private:
  bool saves_;
  std::vector<int> taken_;  // signals
  std::string notice_;
};

/// For a signal handler: sends `signal` to a process that the same signal may have reached already.
void pass_on_signal(pid_t process, int signal);

}  // namespace rl
