// eventually(): waits in a test for a condition that another thread or process makes true.
#pragma once

#include <chrono>
#include <thread>

namespace support {

/// True as soon as the condition holds; false after `patience`. `pause`: the time between two
/// checks, for conditions that are costly.
template <class Condition>
bool eventually(Condition&& condition,
                std::chrono::milliseconds patience = std::chrono::seconds(20),
                std::chrono::milliseconds pause = std::chrono::milliseconds(10)) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace support
