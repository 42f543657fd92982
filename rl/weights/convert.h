// Conversion of stored elements to fp32, one dtype at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rl/weights/weight_source.h"

namespace rl {

/// The value of an IEEE half, exactly (subnormals, infinities and NaN included).
float f16_to_f32(std::uint16_t half);

/// Converts the elements stored at `in` (any alignment) into `out`. `out.size()` is a whole number of the dtype's blocks,
/// and `in` holds that many; both are the caller's duty. Integers beyond 2^24 round to the nearest float.
void convert_to_f32(DType dtype, const std::byte* in, std::span<float> out);

}  // namespace rl
