// Numbers for optimizers whose results another program computed.
#pragma once

#include <vector>

namespace rl::testing {

/// ((37 i + 11 k) mod 23 - 11) / 10: numbers that a Python program makes alike.
inline std::vector<float> fixed_numbers(int count, int k) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 37 + k * 11) % 23 - 11) / 10.0F);
  return values;
}

}  // namespace rl::testing
