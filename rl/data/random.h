// A small random generator with the same numbers on every platform: std::shuffle and the std
// distributions do not promise that.
#pragma once

#include <cstdint>

namespace rl {

/// SplitMix64; Steele, Lea, Flood 2014. A value: copy it to fork it.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound), without bias (Lemire 2019, arXiv:1805.10941). `bound` > 0.
  std::uint64_t below(std::uint64_t bound) {
    while (true) {
      const unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
      const std::uint64_t low = static_cast<std::uint64_t>(product);
      if (low >= bound || low >= (-bound) % bound) return static_cast<std::uint64_t>(product >> 64);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace rl
