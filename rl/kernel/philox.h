// Philox4x32-10, a counter-based random generator; Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3".
#pragma once

#include <array>
#include <cstdint>

namespace rl {

/// Four random words of (key, counter): the same everywhere, with no state to carry.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

/// Uniform in [0, 1), 53 bits, for the token at `position` of sample `sample` under `seed`.
constexpr double philox_uniform(std::uint64_t seed, std::uint64_t sample, std::uint64_t position) {
  const auto words =
      philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
              static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)},
             {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 21) ^ (words[1] >> 11);
  return static_cast<double>(bits & ((std::uint64_t{1} << 53) - 1)) * 0x1.0p-53;
}

}  // namespace rl
