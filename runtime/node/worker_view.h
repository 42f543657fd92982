// WorkerView: the read-only view of a node's worker processes for introspection.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/observe/activity_layout.h"

namespace runtime {

/// Since the node started.
struct WorkerPoolStats {
  std::uint64_t starts = 0;
  std::uint64_t connected_sum_ns = 0;  // from a start until the process had connected
  std::array<std::uint64_t, activity::kBuckets> connected{};  // by how long that took
  std::uint64_t ended = 0;    // as they were told, or by exit code 0
  std::uint64_t failed = 0;   // with another exit code
  std::uint64_t crashed = 0;  // by a signal that the node did not send
};

/// Lives on the event loop.
class WorkerView {
 public:
  /// Those that run now. What only the kernel knows of them is not filled in.
  virtual void list(WorkerList& to) const = 0;
  /// The process that runs the actor; 0: none does.
  virtual pid_t process_of(ActorId actor, std::string* class_name) const = 0;
  /// The actors that serve.
  virtual std::vector<control::ActorInstance> serving() const = 0;
  /// Actors that are being started.
  virtual std::size_t starting() const = 0;
  /// What the actor's process lacks to be started; empty: nothing that is known.
  virtual std::string start_trouble(ActorId actor) const = 0;
  virtual const WorkerPoolStats& stats() const = 0;

 protected:
  ~WorkerView() = default;
};

}  // namespace runtime
