// Private to rl/kernel: the inner loop of `linear`, written once over a Lanes type. Included by the
// kernels_*.cpp after their lanes.
#pragma once

#include <cstdint>
#include <utility>

#include "rl/kernel/int8_generic.h"
#include "rl/kernel/kernel_table.h"

namespace rl::kernel {

/// Where a tile's weights come from: rows of fp32 ...
template <class L>
struct PlainRows {
  const float* first;
  std::int64_t in;

  [[gnu::always_inline]] inline L load(int o, std::int64_t k) const {
    return L::load(first + o * in + k);
  }
  [[gnu::always_inline]] inline L load_first(int o, std::int64_t k, std::int64_t n) const {
    return L::load_first(first + o * in + k, n);
  }
  [[gnu::always_inline]] inline void prefetch(int o, std::int64_t k) const {
    __builtin_prefetch(first + o * in + k, 0, 2);
  }
};

/// ... or of 8 bits, brought to fp32 on the way: the numbers that dequantize_int8_row() gives.
template <class L>
struct Int8Rows {
  Int8Weight first;
  std::int64_t in;

  [[gnu::always_inline]] inline L load(int o, std::int64_t k) const {
    return int8_lanes<L>(first.from(o, in), k);
  }
  [[gnu::always_inline]] inline L load_first(int o, std::int64_t k, std::int64_t) const {
    return load(o, k);
  }  // zeros follow
  [[gnu::always_inline]] inline void prefetch(int o, std::int64_t k) const {
    if (k % 64 == 0) __builtin_prefetch(first.values + o * int8_stride(in) + k, 0, 2);
  }
};

/// R rows x O outputs over all of k. Each of the R * O sums has 16 partial sums in one accumulator,
/// whatever R and O are. `weights` are those from `output` on; `kPrefetch` asks the cache for the O
/// rows that follow, which the next tile needs.
template <class L, int R, int O, bool kPrefetch, class Rows>
void linear_tile(const LinearBlock& block, const Rows& weights, std::int64_t row,
                 std::int64_t output) {
  const std::int64_t in = block.in;
  const float* x = block.x + row * block.x_stride;
  L sums[R * O];
#pragma GCC unroll 32
  for (int i = 0; i < R * O; ++i) sums[i] = L::zero();

  const std::int64_t whole = in / 16 * 16;
  std::int64_t k = 0;
  for (; k < whole; k += 16) {
    L w[O];
#pragma GCC unroll 8
    for (int o = 0; o < O; ++o) {
      w[o] = L::held(weights.load(o, k));
      if constexpr (kPrefetch) weights.prefetch(O + o, k);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const L xr = L::held(L::load(x + r * block.x_stride + k));
#pragma GCC unroll 8
      for (int o = 0; o < O; ++o) sums[r * O + o] = L::fma(xr, w[o], sums[r * O + o]);
    }
  }
  if (k < in) {
    L w[O];
#pragma GCC unroll 8
    for (int o = 0; o < O; ++o) w[o] = weights.load_first(o, k, in - k);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const L xr = L::load_first(x + r * block.x_stride + k, in - k);
#pragma GCC unroll 8
      for (int o = 0; o < O; ++o) sums[r * O + o] = L::fma(xr, w[o], sums[r * O + o]);
    }
  }

  float folded[(R * O + 3) / 4 * 4];
#pragma GCC unroll 8
  for (int i = 0; i < R * O; i += 4) {
    constexpr int kLast = R * O - 1;
    L::fold4(sums[i], sums[i + 1 < kLast ? i + 1 : kLast], sums[i + 2 < kLast ? i + 2 : kLast],
             sums[i + 3 < kLast ? i + 3 : kLast], folded + i);
  }
  for (int r = 0; r < R; ++r) {
    float* y = block.y + (row + r) * block.y_stride + output;
    for (int o = 0; o < O; ++o)
      y[o] = block.bias == nullptr ? folded[r * O + o] : folded[r * O + o] + block.bias[output + o];
  }
}

/// linear_tile for a number of rows known only now, 1 .. kTileRowsMax.
template <class L, int O, bool kPrefetch, class Rows, int... R>
void linear_rows(const LinearBlock& block, const Rows& weights, std::int64_t row, int rows,
                 std::int64_t output, std::integer_sequence<int, R...>) {
  static_cast<void>((
      (rows == R + 1 && (linear_tile<L, R + 1, O, kPrefetch>(block, weights, row, output), true)) ||
      ...));
}

/// All rows against outputs [begin, end), whose number is a multiple of O. A few outputs are taken
/// at a time, and their weights stay in the second-level cache (8-bit ones as fp32). A tile's rows
/// are read once for all of them. Of a tile's operands the rows are the larger part.
template <class L, int O>
void linear_outputs(const LinearBlock& block, std::int64_t begin, std::int64_t end) {
  static_assert(kLinearGroup % O == 0);
  constexpr int kMax = L::kTileRowsMax;
  constexpr std::make_integer_sequence<int, kMax> kRows{};
  for (std::int64_t first = begin; first < end; first += kLinearGroup) {
    const std::int64_t count = end - first < kLinearGroup ? end - first : kLinearGroup;
    const PlainRows<L> weights{block.int8 ? block.scratch : block.weight + first * block.in,
                               block.in};
    if (block.int8) {
      for (std::int64_t o = 0; o < count; ++o)
        dequantize_int8_row<L>(block.int8.from(first + o, block.in), block.in,
                               block.scratch + o * block.in);
    }
    const auto tiles = [&](auto tile) {
      for (std::int64_t o = 0; o < count; o += O)
        tile(PlainRows<L>{weights.first + o * block.in, block.in}, first + o);
    };
    std::int64_t row = 0;
    if (!block.int8) {  // from memory
      tiles([&](const PlainRows<L>& rows, std::int64_t output) {
        linear_tile<L, kMax, O, true>(block, rows, 0, output);
      });
      row = kMax;
    }
    for (; row + kMax <= block.rows; row += kMax) {
      tiles([&](const PlainRows<L>& rows, std::int64_t output) {
        linear_tile<L, kMax, O, false>(block, rows, row, output);
      });
    }
    if (row == block.rows) continue;
    const int left = static_cast<int>(block.rows - row);
    tiles([&](const PlainRows<L>& rows, std::int64_t output) {
      linear_rows<L, O, false>(block, rows, row, left, output, kRows);
    });
  }
}

/// Up to R rows in one tile as wide as the registers allow.
template <class L, int R>
void linear_few_rows(const LinearBlock& block) {
  constexpr int O = L::tile_outputs(R);
  const std::int64_t whole = block.out / O * O;
  const auto tiles = [&](auto rows_from) {
    for (std::int64_t output = 0; output < whole; output += O)
      linear_tile<L, R, O, true>(block, rows_from(output), 0, output);
    for (std::int64_t output = whole; output < block.out; ++output)
      linear_tile<L, R, 1, false>(block, rows_from(output), 0, output);
  };
  if (block.int8) {
    tiles([&](std::int64_t output) {
      return Int8Rows<L>{block.int8.from(output, block.in), block.in};
    });
  } else {
    tiles([&](std::int64_t output) {
      return PlainRows<L>{block.weight + output * block.in, block.in};
    });
  }
}

template <class L, int... R>
void linear_few_rows(const LinearBlock& block, std::integer_sequence<int, R...>) {
  static_cast<void>(((block.rows == R + 1 && (linear_few_rows<L, R + 1>(block), true)) || ...));
}

template <class L>
void linear_block(const LinearBlock& block) {
  if (block.rows <= L::kTileRowsMax)
    return linear_few_rows<L>(block, std::make_integer_sequence<int, L::kTileRowsMax>{});
  constexpr int O = L::tile_outputs(L::kTileRowsMax);
  const std::int64_t whole = block.out / O * O;
  linear_outputs<L, O>(block, 0, whole);
  linear_outputs<L, 1>(block, whole, block.out);
}

}  // namespace rl::kernel
