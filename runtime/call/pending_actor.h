// PendingActor: an actor that was asked for and is not there yet.
#pragma once

#include <memory>

#include "runtime/call/object_state.h"
#include "runtime/control/membership.h"

namespace runtime {

/// `created` settles (without a value) when the constructor has returned or failed.
struct PendingActor {
  ActorId actor;
  ObjectStatePtr created;
  std::shared_ptr<ActorAddress> address;  // set when created without failure
};

}  // namespace runtime
