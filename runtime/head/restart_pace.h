// RestartPace: the pause before an actor is started again, longer for one that keeps ending soon.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "runtime/head/head_context.h"

namespace runtime {

class RestartPace {
 public:
  explicit RestartPace(const HeadContext& context) : context_(context) {}

  /// An incarnation has ended, and another is to start. `moves`: through no fault of the actor.
  std::chrono::milliseconds next_delay(ActorId actor, bool moves);
  void forget(ActorId actor) { paces_.erase(actor); }

 private:
  /// How fast an actor's incarnations follow one another.
  struct Pace {
    Deadline placed = Deadline::min();  // the last one
    std::uint32_t short_lived = 0;
  };

  const HeadContext& context_;
  std::map<ActorId, Pace> paces_;  // of actors that were restarted
};

}  // namespace runtime
