// ProcessWatch: the end of a process that this one has not started.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "runtime/core/asio.h"
#include "runtime/core/result.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// By a pidfd: a number that is used again is no matter. On the loop.
class ProcessWatch {
 public:
  /// `ended` runs once, on the loop; not after this object's end. A process that has ended already
  /// has. Not in a simulation, where nothing is watched. Errors: kResourceExhausted (no
  /// descriptor), kInvalidArgument (the kernel has no such thing).
  static Result<std::shared_ptr<ProcessWatch>> start(EventLoop& loop, pid_t process,
                                                     std::function<void()> ended);
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch();

 private:
  struct State;
  explicit ProcessWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;  // also the handler's
};

}  // namespace runtime
