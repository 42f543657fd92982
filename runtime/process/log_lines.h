// LogLines: whole lines that a worker wrote, with their job, worker and node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/ids.h"

namespace runtime {

/// Whole lines that a worker wrote.
struct LogLines {
  JobId job;
  WorkerId worker;
  NodeId node;
  std::string class_name;  // or the actor's log prefix; empty until the worker runs an actor
  std::int32_t pid = 0;
  bool is_stderr = false;
  std::vector<std::string> lines;  // without line ends

  /// "(Counter pid=123, node=7f3a0011) "
  std::string prefix() const;
  bool operator==(const LogLines&) const = default;
};

}  // namespace runtime
