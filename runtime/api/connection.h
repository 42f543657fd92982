// Connection: the connection to the cluster that the parts of a program's runtime share.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/call/fwd.h"
#include "runtime/core/result.h"

namespace runtime {

/// Changes in Runtime::start() and stop() alone.
struct Connection {
  std::shared_ptr<Process> process;  // once started
  bool stopped = false;
  std::uint64_t generation = 0;  // of the process that started it; 0: none has

  /// In a child that fork() made: threads, connections and cluster are its parent's.
  bool is_forked() const;
  /// kUnavailable: not started; kCancelled: stopped; kInvalidArgument: a child that fork() made.
  Status require_started() const;
};

}  // namespace runtime
