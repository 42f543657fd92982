// ActorDeath: the end of an actor as an object, to be waited for like the result of a call.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>

#include "runtime/call/fwd.h"
#include "runtime/codec/codec.h"
#include "runtime/core/ids.h"
#include "runtime/core/status.h"

namespace runtime {

/// How an actor ended for good. A value that may be passed on.
struct ActorDeath {
  Status status;  // what its callers get: kActorDied with the actor, its process and the cause
  std::int32_t exit_code = -1;  // of its last process; -1: it did not exit by itself
  std::int32_t signal = 0;      // that killed it; 0: none
  std::uint32_t restarts = 0;   // that it had had
  auto fields() { return std::tie(status, exit_code, signal, restarts); }
};

/// Settles with an ActorDeath when the actor has ended for good; fails when the runtime is stopped.
/// Private to the runtime: see Runtime::when_dead.
ObjectStatePtr death_of(const QueryContextPtr& queries, ActorId actor);

}  // namespace runtime
