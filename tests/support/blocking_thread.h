// A thread that a test can see waiting, for calls that block and say nothing.
#pragma once

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>

#include "tests/support/eventually.h"

namespace support {

/// Whether the thread of this process sleeps in the kernel (state S).
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const auto name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.compare(name_end + 2, 1, "S") == 0;
}

/// A thread that is about to block: it calls begin() last before that.
class BlockingThread {
 public:
  void begin() { thread_ = ::gettid(); }
  /// Waits until that thread sleeps.
  bool is_blocked() const {
    return eventually([&] { return thread_ != 0 && is_asleep(thread_); });
  }

 private:
  std::atomic<pid_t> thread_{0};
};

}  // namespace support
