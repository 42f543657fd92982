// Stacks of a worker's threads, also when it is stuck or stopped. A signal asks for them, its
// activity page has the answer, and the files that it runs give the names.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/observe.h"
#include "runtime/observe/activity_table.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// The functions that the addresses of stacks lie in: "Counter::add(int) +0x12 (counter)". The
/// first of each is where a thread is; the others are where it returns to. Reads symbol tables,
/// which may take a while: not for the event loop.
std::vector<std::vector<std::string>> name_frames(
    pid_t pid, const std::vector<std::vector<std::uint64_t>>& stacks);

/// Lives on the event loop, and has its own threads that read symbol tables.
class StackProbes {
 public:
  StackProbes(EventLoop& loop, ActivityTable& table) : loop_(loop), table_(table) {}
  StackProbes(const StackProbes&) = delete;
  StackProbes& operator=(const StackProbes&) = delete;
  /// Waits for the threads; answers that have not been given never are.
  ~StackProbes();

  /// Takes the stacks of all threads of a process of this node, after those of earlier questions
  /// about the same process. `done` runs on the loop, within a second or so of its turn. Errors:
  /// kResourceExhausted (too many questions at once), kNotFound.
  void take(pid_t pid, std::function<void(Result<StackReport>)> done);

 private:
  struct Probe;
  static constexpr std::size_t kProbesMax = 8;

  EventLoop& loop_;
  ActivityTable& table_;
  std::map<std::uint64_t, std::shared_ptr<Probe>> probes_;  // under way
  std::uint64_t requests_ = 0;
};

}  // namespace runtime
