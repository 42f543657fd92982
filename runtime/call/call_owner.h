// CallOwner: what a call asks of the one that sends it.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/call/fwd.h"
#include "runtime/core/result.h"

namespace runtime {

/// Any thread. Calls keep it alive.
class CallOwner {
 public:
  /// The actor that is called.
  virtual const CallTarget& target() const = 0;
  virtual const CallerContextPtr& context() const = 0;
  /// The process of the newest incarnation known.
  virtual std::shared_ptr<const WorkerLink> worker() const = 0;
  /// Whether calls wait for the actor to be started again.
  virtual bool is_restarting() const = 0;

  /// Wants the call to end; its result settles when the actor has answered. At once if it has not
  /// been sent. Errors: kInvalidArgument (a call of a shared actor cannot be forced; it was asked
  /// all the same).
  virtual Status cancel(const OutgoingCallPtr& call, CancelMode mode) = 0;
  /// Tells the actor how many values of the call's stream were taken.
  virtual void tell_taken(const OutgoingCallPtr& call, std::uint64_t count) = 0;

 protected:
  ~CallOwner() = default;
};

}  // namespace runtime
