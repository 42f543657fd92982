// Rotary position embedding; Su et al. 2021, arXiv:2104.09864.
#pragma once

#include <cstdint>
#include <span>

#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

/// Fills cos and sin, each [positions, inverse_frequencies.size()], with attention_factor * cos(p *
/// f) and ... * sin(p * f). The angle is formed in fp32 as Hugging Face does it, its cosine and
/// sine in double.
void rope_tables(std::span<const float> inverse_frequencies, std::int64_t positions,
                 float attention_factor, float* cos, float* sin);

/// Rows of heads whose first `2 * half` elements are rotated in pairs (i, i + half), the layout of
/// Hugging Face's Llama. The rest of a head (partial rotary) is copied.
struct RopeShape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t half = 0;  // rotary dimensions / 2 = columns of the tables
};

/// y = rotation of x at positions[r], both [rows, heads, head_dim] with `stride` elements between
/// rows (0: dense); they may be the same. cos and sin are tables [positions, half] that cover every
/// position. Negated `sin` gives the inverse (the backward pass).
void rope(ThreadPool& pool, const RopeShape& shape, const float* x, std::int64_t rows,
          std::int64_t stride, const std::int32_t* positions, const float* cos, const float* sin,
          float* y);

}  // namespace rl::kernel
