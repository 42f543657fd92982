// Ctrl-C and SIGTERM as a wish to stop where nothing is lost.
#pragma once

#include <string>

namespace rl {

/// While it lives the first SIGINT or SIGTERM is noted, and `notice` goes to stderr; the next one ends the process as it always would. One at a time in a process.
class InterruptWatch {
 public:
  explicit InterruptWatch(std::string notice);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const;

 private:
  std::string notice_;
};

}  // namespace rl
