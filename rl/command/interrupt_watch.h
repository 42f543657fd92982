// Ctrl-C and SIGTERM as a wish to stop where nothing is lost.
#pragma once

#include <cstdint>
#include <string>

#include "rl/train/trainer_options.h"
#include "runtime/core/result.h"

namespace rl {

/// While it lives the first SIGINT or SIGTERM is noted, and told on stderr; the next one ends the process as it always would. One at a time in a process.
class InterruptWatch {
 public:
  /// `saves`: the step that is interrupted is followed by a checkpoint.
  explicit InterruptWatch(bool saves);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const;

  /// kCancelled: what a command that was interrupted after `step` of `steps` ends with, and how to go on.
  runtime::Status cut(std::int64_t step, std::int64_t steps, ResumeMode resume) const;

 private:
  bool saves_;
  std::string notice_;
};

}  // namespace rl
