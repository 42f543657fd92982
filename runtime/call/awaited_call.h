// AwaitedCall: a producer that an actor runs, as the search for cycles of waits sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/call/object_state.h"
#include "runtime/call/wait_step.h"

namespace runtime {

/// Any thread may call any method but on_cycle().
class AwaitedCall : public Producer {
 public:
  /// "Counter 7f3a0011: add".
  virtual std::string describe() const = 0;
  /// Whether it has a limit of time that the program chose, so that its waiters may continue.
  virtual bool has_own_limit() const = 0;
  /// Passes a chain of waits, whose last one is for this call, on to the process that runs it.
  /// The outcome is not reported. Nothing where no process does.
  virtual void tell(const std::vector<WaitStep>& waits) const = 0;
  /// It can only end by the end of a call that waits for it. `fails`: it is to fail with `cycle`,
  /// so that the other calls of the cycle can continue. On the loop. `self`: this.
  virtual void on_cycle(const std::shared_ptr<Producer>& self, const std::string& cycle,
                        bool fails) = 0;
};

}  // namespace runtime
