// Private to rl/kernel: `multiply`, written once over a Lanes type. Included by the kernels_*.cpp
// after their lanes. Both factors are packed in the order in which tiles read them, as in Goto and
// van de Geijn 2008 ("Anatomy of High-Performance Matrix Multiplication").
#pragma once

#include <cstdint>

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {

// A panel has kWidth lines of a factor, as [depth][kWidth]; what lies behind its last line is not
// used. L only keeps what is compiled for one instruction set apart from the others.

/// Panels of `count` lines that lie next to each other. All of them are packed at once, so that
/// memory is read in its order. The steps of one panel alone are each on another page.
template <class L, int kWidth>
void pack_neighbours(const float* from, std::int64_t depth_stride, std::int64_t count,
                     std::int64_t depth, float* into) {
  const std::int64_t whole = count / kWidth * kWidth;
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* step = from + k * depth_stride;
    for (std::int64_t panel = 0; panel < whole; panel += kWidth) {
      float* out = into + panel * depth + k * kWidth;
      for (int i = 0; i < kWidth; ++i) out[i] = step[panel + i];
    }
    if (whole == count) continue;
    float* out = into + whole * depth + k * kWidth;
    for (int i = 0; i < kWidth; ++i) out[i] = whole + i < count ? step[whole + i] : 0.0F;
  }
}

using Four [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;

/// Four steps of four lines, as [step][kWidth].
template <class L, int kWidth>
[[gnu::always_inline]] inline void pack_square(const float* const* lines, std::int64_t step,
                                               float* out) {
  const auto line = [&](int i) { return *reinterpret_cast<const Four*>(lines[i] + step); };
  const auto store = [&](int k, Four four) { *reinterpret_cast<Four*>(out + k * kWidth) = four; };
  const Four a = line(0), b = line(1), c = line(2), d = line(3);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  store(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  store(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  const Four last_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four last_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(2, __builtin_shufflevector(last_ab, last_cd, 0, 1, 4, 5));
  store(3, __builtin_shufflevector(last_ab, last_cd, 2, 3, 6, 7));
}

/// Panels of other lines.
template <class L, int kWidth>
void pack_lines(const float* from, std::int64_t line_stride, std::int64_t depth_stride,
                std::int64_t count, std::int64_t depth, float* into) {
  const std::int64_t by_squares = depth_stride == 1 && kWidth % 4 == 0 ? depth / 4 * 4 : 0;
  for (std::int64_t panel = 0; panel < count; panel += kWidth) {
    const float* lines[kWidth];
    for (int i = 0; i < kWidth; ++i)
      lines[i] = from + (panel + i < count ? panel + i : panel) * line_stride;
    float* out = into + panel * depth;
    for (std::int64_t k = 0; k < by_squares; k += 4)
      for (int i = 0; i + 4 <= kWidth; i += 4)
        pack_square<L, kWidth>(lines + i, k, out + k * kWidth + i);
    for (std::int64_t k = by_squares; k < depth; ++k)
      for (int i = 0; i < kWidth; ++i) out[k * kWidth + i] = lines[i][k * depth_stride];
  }
}

template <class L, int kWidth>
void pack_panels(const float* from, std::int64_t line_stride, std::int64_t depth_stride,
                 std::int64_t count, std::int64_t depth, float* into) {
  if (line_stride == 1)
    pack_neighbours<L, kWidth>(from, depth_stride, count, depth, into);
  else
    pack_lines<L, kWidth>(from, line_stride, depth_stride, count, depth, into);
}

/// One tile of packed panels over a stretch of k: R x 16 V sums.
template <class L, int R, int V>
void product_tile(const float* a, const float* b, std::int64_t depth, float* c,
                  std::int64_t c_stride, bool adds) {
  L sums[R * V];
#pragma GCC unroll 32
  for (int i = 0; i < R * V; ++i) sums[i] = L::zero();
  for (std::int64_t k = 0; k < depth; ++k) {
    L columns[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) columns[v] = L::held(L::load(b + k * V * 16 + v * 16));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const L row = L::all(a[k * R + r]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r * V + v] = L::fma(row, columns[v], sums[r * V + v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      float* at = c + r * c_stride + v * 16;
      (adds ? L::load(at) + sums[r * V + v] : sums[r * V + v]).store(at);
    }
  }
}

/// The same where the tile reaches beyond the product.
template <class L, int R, int V>
void product_tile_at_border(const float* a, const float* b, std::int64_t depth, float* c,
                            std::int64_t c_stride, bool adds, std::int64_t rows,
                            std::int64_t columns) {
  float tile[R * V * 16];
  product_tile<L, R, V>(a, b, depth, tile, V * 16, false);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < columns; ++i) {
      float& at = c[r * c_stride + i];
      at = adds ? at + tile[r * V * 16 + i] : tile[r * V * 16 + i];
    }
  }
}

template <class L>
void multiply_packed(const Product& p, float* packed) {
  constexpr int R = L::kProductTileRows;
  constexpr int V = L::kProductTileVectors;
  constexpr std::int64_t kWidth = V * 16;
  constexpr std::int64_t kRows = kProductRows / R * R;
  static_assert(kProductColumns % kWidth == 0);
  const auto least = [](std::int64_t a, std::int64_t b) { return a < b ? a : b; };
  float* const packed_b = packed;
  float* const packed_a = packed + kProductColumns * kProductStretch;
  for (std::int64_t n = 0; n < p.columns; n += kProductColumns) {
    const std::int64_t columns = least(kProductColumns, p.columns - n);
    for (std::int64_t k = 0; k < p.depth; k += kProductStretch) {
      const std::int64_t depth = least(kProductStretch, p.depth - k);
      const bool adds = p.adds || k > 0;
      pack_panels<L, kWidth>(p.b.data + k * p.b.row_stride + n * p.b.column_stride,
                             p.b.column_stride, p.b.row_stride, columns, depth, packed_b);
      for (std::int64_t m = 0; m < p.rows; m += kRows) {
        const std::int64_t rows = least(kRows, p.rows - m);
        pack_panels<L, R>(p.a.data + m * p.a.row_stride + k * p.a.column_stride, p.a.row_stride,
                          p.a.column_stride, rows, depth, packed_a);
        for (std::int64_t j = 0; j < columns; j += kWidth) {
          for (std::int64_t i = 0; i < rows; i += R) {
            const float* a = packed_a + i * depth;
            const float* b = packed_b + j * depth;
            float* c = p.c + (m + i) * p.c_stride + n + j;
            if (rows - i >= R && columns - j >= kWidth)
              product_tile<L, R, V>(a, b, depth, c, p.c_stride, adds);
            else
              product_tile_at_border<L, R, V>(a, b, depth, c, p.c_stride, adds, least(R, rows - i),
                                              least(kWidth, columns - j));
          }
        }
      }
    }
  }
}

}  // namespace rl::kernel
