// DeadActors: forgets dead actors once the head need not answer questions about them.
#pragma once

#include <deque>

#include "runtime/head/head_context.h"

namespace runtime {

class DeadActors {
 public:
  explicit DeadActors(const HeadContext& context) : context_(context) {}

  /// One has died now.
  void note_death() { deaths_.push_back(context_.now()); }
  /// Forgets those that HeadOptions keeps no longer.
  void tick(Deadline now);
  Deadline next_tick() const;

 private:
  const HeadContext& context_;
  std::deque<Deadline> deaths_;  // when the last ones of the dead died
};

}  // namespace runtime
