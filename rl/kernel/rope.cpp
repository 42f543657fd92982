#include "rl/kernel/rope.h"

#include <algorithm>
#include <cmath>

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {

void rope_tables(std::span<const float> inverse_frequencies, std::int64_t positions,
                 float attention_factor, float* cos, float* sin) {
  const std::size_t half = inverse_frequencies.size();
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * inverse_frequencies[i];
      const std::size_t at = static_cast<std::size_t>(p) * half + i;
      cos[at] = attention_factor * static_cast<float>(std::cos(double{angle}));
      sin[at] = attention_factor * static_cast<float>(std::sin(double{angle}));
    }
  }
}

void rope(ThreadPool& pool, const RopeShape& shape, const float* x, std::int64_t rows,
          std::int64_t stride, const std::int32_t* positions, const float* cos, const float* sin,
          float* y) {
  const auto head_kernel = kernels().rope_head;
  const std::int64_t width = shape.heads * shape.head_dim;
  const std::int64_t row_stride = stride == 0 ? width : stride;
  const std::int64_t rotated = 2 * shape.half;
  pool.parallel_for(rows, 1 + (16 << 10) / width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t at = positions[r] * shape.half;
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        const float* from = x + r * row_stride + head * shape.head_dim;
        float* to = y + r * row_stride + head * shape.head_dim;
        head_kernel(from, shape.half, cos + at, sin + at, to);
        if (from != to) std::copy(from + rotated, from + shape.head_dim, to + rotated);
      }
    }
  });
}

}  // namespace rl::kernel
