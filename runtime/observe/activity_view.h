// ActivityView: the side of activity_layout.h that reads, in the node. What it finds is checked:
// the process that writes runs users' code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/control/observe.h"
#include "runtime/core/result.h"
#include "runtime/observe/activity_layout.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// What a process has done so far, and does.
struct ActivitySnapshot {
  struct Running {
    std::int32_t tid = 0;
    ActorId actor;
    std::string method;  // "Counter.add"
    std::uint64_t begun_ns = 0;
  };
  std::vector<ClassLoad> classes;
  std::vector<ActorLoad> actors;
  std::vector<Running> running;
};

/// Of bytes that another process may be writing, or that are anything at all; at least
/// sizeof(Layout) of them.
ActivitySnapshot read_snapshot(const activity::Layout& layout, bool with_actors);
/// What was recorded since `after`, which becomes the number of the last event.
TraceOfProcess read_trace(const activity::Layout& layout, std::uint64_t& after);

/// A process's page, as it came over its connection. Mapped only while it is read, so that the
/// node's memory does not grow with its workers.
class ActivityView {
 public:
  /// Errors: kInvalidArgument when the descriptor is no page, or one that could be cut short while
  /// it is read.
  static Result<ActivityView> open(FileDescriptor fd);

  /// Nothing when there is no memory to map it.
  ActivitySnapshot snapshot(bool with_actors) const;
  TraceOfProcess trace(std::uint64_t& after) const;
  void record_until(std::uint64_t ns);
  /// The signal that has a thread of the process write its stack; 0: none.
  int stack_signal() const;
  /// The stack that thread `slot` wrote for that request; nothing if it did not (yet).
  std::vector<std::uint64_t> stack(std::size_t slot, std::uint64_t request,
                                   std::uint32_t tid) const;

 private:
  explicit ActivityView(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace runtime
