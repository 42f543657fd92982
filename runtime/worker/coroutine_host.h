// CoroutineHost: the interface to its actor that the coroutine of a call has.
#pragma once

#include "runtime/core/status.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

struct CoroutineCall;

/// The actor that coroutines run in the turns of.
class CoroutineHost {
 public:
  virtual ~CoroutineHost() = default;
  /// Runs the task in a turn, also of an actor that is being stopped.
  virtual void run_in_turn(UniqueFunction<void()> task) = 0;
  /// In a turn: the coroutine has ended; answers the call and lets the next one go.
  virtual void end_coroutine(CoroutineCall& call, Status status) = 0;
  /// In a turn: the call no longer waits for its arguments' bytes; those of its lane that its
  /// caller made after it may go.
  virtual void end_fetch(CoroutineCall& call) = 0;
};

}  // namespace runtime
