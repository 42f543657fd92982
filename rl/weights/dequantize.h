// GGUF's block formats to fp32. A block is a run of elements of one row that share scales. It has
// 32 elements in the older formats, 256 (with scales of scales) in the K-quants. The layouts are
// ggml's.
#pragma once

#include <cstddef>
#include <span>

#include "rl/weights/weight_source.h"

namespace rl {

/// De-quantises whole blocks stored at `in` into `out`; `dtype` is one of kQ*, `out.size()` a
/// multiple of its block.
void dequantize(DType dtype, const std::byte* in, std::span<float> out);

}  // namespace rl
