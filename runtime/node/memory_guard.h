// MemoryGuard: stops the worker that grew most when the node runs short of memory, before the
// kernel stops whichever process it likes. Memory that no process uses goes first.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/asio.h"
#include "runtime/core/ids.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// Of the machine or of the cgroup around this process, whichever has the smaller share left.
struct MemoryUse {
  std::uint64_t used_bytes = 0;  // without what the kernel can drop at once
  std::uint64_t limit_bytes = 0;
  std::string whose;  // "the machine", "cgroup /a/b"
  double fraction() const {
    return limit_bytes == 0 ? 0
                            : static_cast<double>(used_bytes) / static_cast<double>(limit_bytes);
  }
};
/// `root` is where /proc and /sys are (tests). Both versions of cgroups.
MemoryUse memory_use(const std::filesystem::path& root = "/");
/// Memory of a process that is its own, not shared: RssAnon. 0 when there is no such process.
std::uint64_t own_memory_bytes(pid_t pid);

struct MemoryGuardOptions {
  double threshold = 0.95;  // of the memory in use; 0: never stops anything
  std::chrono::milliseconds period{250};
  std::chrono::milliseconds window{60'000};  // growth is measured over this time
  std::chrono::milliseconds pause{2000};     // after one was stopped, until its memory is back
};

/// A worker that could be stopped.
struct GuardedWorker {
  WorkerId id;
  pid_t pid = 0;
  std::string name;  // "actor Counter 7f3a0011"
};

/// Lives on the event loop.
class MemoryGuard {
 public:
  struct Callbacks {
    std::function<MemoryUse()> use;
    std::function<std::vector<GuardedWorker>()> workers;
    std::function<std::uint64_t(pid_t)> own_memory;
    std::function<void(const WorkerId&, const std::string& reason)> stop;
    /// Gives back what no process uses, and says how much that will be. Null: there is never any.
    std::function<std::uint64_t()> give_back;
  };

  /// `node` is for messages.
  MemoryGuard(EventLoop& loop, std::string node, MemoryGuardOptions options, Callbacks callbacks);
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

  /// One look; what the timer does.
  void look(Deadline now);
  /// Workers that it has stopped.
  std::uint64_t stops() const { return stops_; }

 private:
  struct Sample {
    Deadline at;
    std::uint64_t bytes;
  };
  void arm();

  const std::string node_;
  const MemoryGuardOptions options_;
  const Callbacks callbacks_;
  Timer timer_;
  std::map<WorkerId, std::deque<Sample>> samples_;
  Deadline next_sample_ = Deadline::min();
  Deadline quiet_until_ = Deadline::min();
  std::uint64_t stops_ = 0;
  Lifetime lifetime_;
};

}  // namespace runtime
