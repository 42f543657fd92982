// Weights in 8 bits, for products whose time is the time to read the weights. Symmetric, with a
// scale for each group of 64 columns of a row; activations and sums stay fp32. Shapes: I inputs, O
// outputs.
#pragma once

#include <cstdint>

#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

/// Columns that share a scale.
inline constexpr std::int64_t kInt8Group = 64;

/// Elements from one row of 8-bit values to the next: whole vectors, filled up with zeros.
constexpr std::int64_t int8_stride(std::int64_t in) { return (in + 15) / 16 * 16; }

/// Scales of a row.
constexpr std::int64_t int8_groups(std::int64_t in) { return (in + kInt8Group - 1) / kInt8Group; }

/// A weight [O, I]. Element [o, i] stands for values[o * int8_stride(I) + i] * scales[o *
/// int8_groups(I) + i / kInt8Group].
struct Int8Weight {
  const std::int8_t* values = nullptr;
  const float* scales = nullptr;

  explicit operator bool() const { return values != nullptr; }
  /// The rows from `output` on.
  Int8Weight from(std::int64_t output, std::int64_t in) const {
    return values == nullptr
               ? *this
               : Int8Weight{values + output * int8_stride(in), scales + output * int8_groups(in)};
  }
};

/// Rounds a dense weight [out, in]: of each group the largest magnitude becomes 127. So no element
/// is further than half a scale (1/254 of the largest) from what stands for it. A group below 1e-30
/// becomes zeros; one with an infinity or a NaN becomes NaNs, so that it shows in whatever it is
/// used for. The same bits on every instruction set.
void quantize_int8(ThreadPool& pool, const float* weight, std::int64_t out, std::int64_t in,
                   std::int8_t* values, float* scales);

/// What stands for the weight, dense [out, in].
void dequantize_int8(ThreadPool& pool, const Int8Weight& weight, std::int64_t out, std::int64_t in,
                     float* dense);

}  // namespace rl::kernel
