// Private to rl/kernel: rows between fp32 and 8 bits, written once over a Lanes type. Rules as in
// rows_generic.h.
#pragma once

#include <cstdint>

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {

/// One row; see int8.h.
template <class L>
void quantize_int8_row(const float* weight, std::int64_t in, std::int8_t* values, float* scales) {
  const L magic = L::all(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  for (std::int64_t begin = 0; begin < in; begin += kInt8Group) {
    const std::int64_t end = begin + kInt8Group < in ? begin + kInt8Group : in;
    const auto load = [&](std::int64_t k) {
      return k + 16 <= end ? L::load(weight + k) : L::load_first(weight + k, end - k);
    };
    L largest = L::zero();
    L spoiled = L::zero();  // zeros, unless something is not finite
    for (std::int64_t k = begin; k < end; k += 16) {
      const L w = load(k);
      largest = L::max(largest, L::max(w, L::zero() - w));
      spoiled = spoiled + (w - w);
    }
    float lanes[32];
    largest.store(lanes);
    spoiled.store(lanes + 16);
    float magnitude = 0;
    for (int i = 0; i < 16; ++i) {
      magnitude = lanes[i] > magnitude ? lanes[i] : magnitude;
      lanes[16] += i == 0 ? 0 : lanes[16 + i];
    }
    const bool finite = lanes[16] == 0.0F;
    const bool zeros = !finite || magnitude < 1e-30F;
    *scales++ = !finite ? __builtin_nanf("") : zeros ? 0.0F : magnitude / 127.0F;
    const L inverse = L::all(zeros ? 0.0F : 127.0F / magnitude);
    for (std::int64_t k = begin; k < end; k += 16) {
      const L rounded = zeros ? L::zero() : L::fma(load(k), inverse, magic) - magic;
      rounded.store_int8(values + k);
    }
  }
}

/// 16 columns of a row from column k on, which is a multiple of 16.
template <class L>
[[gnu::always_inline]] inline L int8_lanes(const Int8Weight& row, std::int64_t k) {
  return L::load_int8(row.values + k) * L::all(row.scales[k / kInt8Group]);
}

/// One row; `in` floats are written.
template <class L>
void dequantize_int8_row(const Int8Weight& row, std::int64_t in, float* dense) {
  const std::int64_t whole = in / 16 * 16;
  for (std::int64_t k = 0; k < whole; k += 16) int8_lanes<L>(row, k).store(dense + k);
  if (whole < in) int8_lanes<L>(row, whole).store_first(dense + whole, in - whole);
}

}  // namespace rl::kernel
