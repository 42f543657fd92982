// ActorControl: the operations on actors for other managers.
#pragma once

#include <chrono>
#include <string>

#include "runtime/core/result.h"
#include "runtime/head/cluster_tables.h"

namespace runtime {

class ActorControl {
 public:
  virtual ~ActorControl() = default;

  /// Has its node end the actor's process; without a grace: kills it. `drain`: it serves the calls
  /// that wait first.
  virtual void stop(const ActorRecord& record, std::chrono::milliseconds grace, std::string reason,
                    bool drain) = 0;
  /// The same, because its placement group is placed again as a whole. `grace`: for one that is
  /// started again, to serve the calls that wait and to save its state.
  virtual void stop_torn(const ActorRecord& record, const std::string& text,
                         std::chrono::milliseconds grace) = 0;
  /// It is dead for good. `why`: for those that wait for its address.
  virtual void die(ActorId actor, const DeathCause& cause, const Status& why) = 0;
};

}  // namespace runtime
