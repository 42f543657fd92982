// AwaitedCall: a producer that an actor runs, as the search for cycles of waits sees it.
#pragma once

#include <memory>
#include <string>

#include "runtime/call/object_state.h"

namespace runtime {

/// Any thread may call any method but on_cycle().
class AwaitedCall : public Producer {
 public:
  /// "Counter 7f3a0011: add".
  virtual std::string describe() const = 0;
  /// The same of the constructor that it waits for where its actor is not there (yet).
  virtual std::string constructor() const = 0;
  /// Whether it has a limit of time that the program chose, so that its waiters may go on.
  virtual bool has_own_limit() const = 0;
  /// It can only end by the end of a call that waits for it. `fails`: it is to fail with `cycle`,
  /// so that the other calls of the cycle can go on. On the loop. `self`: this.
  virtual void on_cycle(const std::shared_ptr<Producer>& self, const std::string& cycle,
                        bool fails) = 0;
};

}  // namespace runtime
