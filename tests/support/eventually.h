// eventually(): waiting in a test for what another thread or process brings about.
#pragma once

#include <chrono>
#include <thread>

namespace support {

/// Tries until the condition holds: true; false once `patience` is over. `pause`: between two
/// tries, for conditions that cost something.
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
