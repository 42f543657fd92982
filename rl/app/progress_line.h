// One line on a terminal that says how far a long command is.
#pragma once

#include <chrono>
#include <string>

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
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace rl
