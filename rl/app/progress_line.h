// One line on a terminal that says how far a long command is.
#pragma once

#include <string>

#include "runtime/core/clock.h"

namespace rl {

/// Writes to stderr, and only when that is a terminal and the work takes longer than two seconds.
/// The line is erased at the end.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Replaces the line, at most ten times a second.
  void show(const std::string& text);

  double seconds() const;

 private:
  bool terminal_;
  bool shown_ = false;
  runtime::Deadline start_ = runtime::steady_now();
  runtime::Deadline last_ = start_;
};

}  // namespace rl
