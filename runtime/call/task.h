// Tasks: plain functions run by worker processes, for stateless work.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/call/actor_options.h"

namespace runtime {

/// `rt.task(TaskOptions{.cpus = 2}, &score, batch)`
struct TaskOptions {
  double cpus = 1;  // what a worker reserves on its node while it runs such tasks, one at a time
  double gpus = 0;
  ResourceMap resources{};  // further amounts, by name
  /// How often the task is run again after its worker died. As often, after that, its result is
  /// made again when all copies of it are lost. 0: the task runs at most once. A failure of the
  /// function itself is its result and is not tried again, unless retry_failures says so.
  std::uint32_t max_retries = 3;
  bool retry_failures = false;  // also run again, max_retries times, when the function fails or
                                // throws; not when it was cancelled
  /// From task() to the result: waiting for a worker and retries included. Making a lost result
  /// again takes as long again.
  std::chrono::milliseconds timeout = kDefaultCallTimeout;
};

/// The actor that runs tasks: without state, so that any number of functions and callers may use
/// one after another.
struct TaskRunner {
  static constexpr const char* kClassName = "(tasks)";
};

}  // namespace runtime
