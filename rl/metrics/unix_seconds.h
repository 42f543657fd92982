// The wall clock for the logs of other programs.
#pragma once

#include <chrono>

namespace rl {

/// Seconds since 1970, to the microsecond.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace rl
