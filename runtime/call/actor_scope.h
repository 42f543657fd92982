// The actor whose code runs on a thread: what an actor spawns is its own, and ends with it.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/core/ids.h"

namespace runtime {

/// One start of an actor.
struct ActorInstance {
  ActorId actor;
  std::uint64_t incarnation = 0;
};

/// While it lives, the thread runs code of that actor. Needed where one process runs several; they
/// nest.
class ActorScope {
 public:
  explicit ActorScope(ActorInstance actor) : outer_(current_) { current_ = actor; }
  ActorScope(const ActorScope&) = delete;
  ActorScope& operator=(const ActorScope&) = delete;
  ~ActorScope() { current_ = outer_; }

  /// None outside of any scope.
  static ActorInstance current() { return current_; }
  /// For a simulation, which changes it with its threads.
  static ActorInstance exchange_current(ActorInstance next) {
    return std::exchange(current_, next);
  }

 private:
  static inline thread_local ActorInstance current_{};
  ActorInstance outer_;
};

}  // namespace runtime
