// Conversion of stored elements to fp32, one dtype at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rl/weights/weight_source.h"

namespace rl {

/// The value of an IEEE half, exactly (subnormals, infinities and NaN included).
float f16_to_f32(std::uint16_t half);

/// Converts the elements stored at `in` (any alignment) into `out`. `out.size()` is a whole number
/// of the dtype's blocks, and `in` holds that many; both are the caller's duty. Integers beyond
/// 2^24 round to the nearest float.
void convert_to_f32(DType dtype, const std::byte* in, std::span<float> out);

/// The nearest IEEE half, ties to even; beyond the largest: infinity. As PyTorch converts.
std::uint16_t f32_to_f16(float value);

/// Converts to kF32, kF16 or kBF16 (nearest, ties to even) into `out`, which has room for in.size()
/// of them. Other dtypes are a bug and crash.
void convert_from_f32(DType dtype, std::span<const float> in, std::byte* out);

}  // namespace rl
