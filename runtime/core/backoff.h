// Backoff: the pauses between attempts at what keeps failing for no reason that is known.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace runtime {

/// One byte. Not thread-safe.
class Backoff {
 public:
  /// How long to wait now: 10 ms, then twice as long each time, up to 1.28 s.
  std::chrono::milliseconds next() {
    const auto pause = kFirst * (1 << failures_);
    failures_ = std::min<std::uint8_t>(failures_ + 1, kDoublingsMax);
    return pause;
  }
  /// It has worked.
  void reset() { failures_ = 0; }

 private:
  static constexpr std::chrono::milliseconds kFirst{10};
  static constexpr std::uint8_t kDoublingsMax = 7;
  std::uint8_t failures_ = 0;
};

}  // namespace runtime
