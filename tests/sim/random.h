// The simulation's dice: everything that could go one way or another comes from one seed.
#pragma once

#include <chrono>
#include <cstdint>

namespace sim {

/// SplitMix64 (Steele, Lea, Flood 2014): small, the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::chrono::microseconds micros(std::int64_t low, std::int64_t high) {
    return std::chrono::microseconds(between(low, high));
  }

 private:
  std::uint64_t state_;
};

}  // namespace sim
