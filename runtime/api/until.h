// Until: the time limit of a blocking method of the runtime.
#pragma once

#include <chrono>

#include "runtime/core/clock.h"

namespace runtime {

/// Until when to wait: `5s` from now, a point in time, or (by default) as long as it takes. Calls
/// are bounded by their own deadline even then.
class Until {
 public:
  Until() = default;
  Until(Deadline at) : at_(at) {}  // NOLINT(google-explicit-constructor): `get(ref, deadline)`
  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor): `get(ref, 5s)`
  Until(std::chrono::duration<Rep, Period> from_now) : at_(deadline_after(from_now)) {}

  Deadline at() const { return at_; }

 private:
  Deadline at_ = Deadline::max();
};

}  // namespace runtime
