// ActorWaiters: requests that are answered when something happens to an actor.
#pragma once

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"
#include "runtime/head/waiters.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

class ActorWaiters {
 public:
  /// Called with the actor once its present incarnation has ended, or with null at the deadline.
  using EndAnswerer = UniqueFunction<void(const ActorRecord* ended)>;

  explicit ActorWaiters(const HeadContext& context) : context_(context) {}

  /// Answers at once where the address, or that there will be none, is known.
  void add_for_address(ActorId actor, Deadline deadline, ControlAnswerer answer);
  void add_for_end(ActorId actor, Deadline deadline, EndAnswerer answer);
  /// Answers at the next change of the actor's phase.
  void add_for_change(ActorId actor, Deadline deadline, ControlAnswerer answer);

  void alive(const ActorAddress& address);
  void never_alive(ActorId actor, const Status& why);
  void incarnation_ended(const ActorRecord& record);
  void changed(ActorId actor);

  void tick(Deadline now);
  Deadline next_tick() const;

 private:
  const HeadContext& context_;
  Waiters<ActorId, ControlAnswerer> for_address_;
  Waiters<ActorId, EndAnswerer> for_end_;
  Waiters<ActorId, ControlAnswerer> for_change_;
};

}  // namespace runtime
