// Inputs for kernel tests: reproducible, and nothing round about them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace rl::kernel {

/// `count` values in (-scale, scale).
inline std::vector<float> random_values(std::int64_t count, std::uint32_t seed,
                                        float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values)
    value = scale * (static_cast<float>(generator() >> 8) * 0x1.0p-23F - 1.0F);
  return values;
}

}  // namespace rl::kernel
