// Private to rl/kernel: the inner loop of `linear`, written once over a Lanes type. Included by the kernels_*.cpp after their lanes.
#pragma once

#include <cstdint>
#include <utility>

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {

/// R rows x O outputs over all of k. Each of the R * O sums has 16 partial sums in one accumulator, whatever R and O are.
/// `kPrefetch` asks the cache for the O weight rows that follow, which the next tile needs.
template <class L, int R, int O, bool kPrefetch>
void linear_tile(const LinearBlock& block, std::int64_t row, std::int64_t output) {
  const std::int64_t in = block.in;
  const float* x = block.x + row * block.x_stride;
  const float* weight = block.weight + output * in;
  L sums[R * O];
#pragma GCC unroll 32
  for (int i = 0; i < R * O; ++i) sums[i] = L::zero();

  const std::int64_t whole = in / 16 * 16;
  std::int64_t k = 0;
  for (; k < whole; k += 16) {
    L w[O];
#pragma GCC unroll 8
    for (int o = 0; o < O; ++o) {
      w[o] = L::load(weight + o * in + k);
      if constexpr (kPrefetch) __builtin_prefetch(weight + (O + o) * in + k, 0, 2);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const L xr = L::load(x + r * block.x_stride + k);
#pragma GCC unroll 8
      for (int o = 0; o < O; ++o) sums[r * O + o] = L::fma(xr, w[o], sums[r * O + o]);
    }
  }
  if (k < in) {
    L w[O];
#pragma GCC unroll 8
    for (int o = 0; o < O; ++o) w[o] = L::load_first(weight + o * in + k, in - k);
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
    for (int o = 0; o < O; ++o) y[o] = block.bias == nullptr ? folded[r * O + o] : folded[r * O + o] + block.bias[output + o];
  }
}

/// linear_tile for a number of rows known only now, 1 .. kTileRowsMax.
template <class L, int O, bool kPrefetch, int... R>
void linear_rows(const LinearBlock& block, std::int64_t row, int rows, std::int64_t output, std::integer_sequence<int, R...>) {
  static_cast<void>(((rows == R + 1 && (linear_tile<L, R + 1, O, kPrefetch>(block, row, output), true)) || ...));
}

/// All rows against outputs [begin, end), O at a time; the weights of O outputs stay in the first-level cache meanwhile.
template <class L, int O>
void linear_outputs(const LinearBlock& block, std::int64_t begin, std::int64_t end) {
  constexpr int kMax = L::kTileRowsMax;
  constexpr std::make_integer_sequence<int, kMax> kRows{};
  for (std::int64_t output = begin; output < end; output += O) {
    linear_tile<L, kMax, O, true>(block, 0, output);
    std::int64_t row = kMax;
    for (; row + kMax <= block.rows; row += kMax) linear_tile<L, kMax, O, false>(block, row, output);
    if (row < block.rows) linear_rows<L, O, false>(block, row, static_cast<int>(block.rows - row), output, kRows);
  }
}

/// Up to R rows in one tile as wide as the registers allow.
template <class L, int R>
void linear_few_rows(const LinearBlock& block) {
  constexpr int O = L::tile_outputs(R);
  const std::int64_t whole = block.out / O * O;
  for (std::int64_t output = 0; output < whole; output += O) linear_tile<L, R, O, true>(block, 0, output);
  for (std::int64_t output = whole; output < block.out; ++output) linear_tile<L, R, 1, false>(block, 0, output);
}

template <class L, int... R>
void linear_few_rows(const LinearBlock& block, std::integer_sequence<int, R...>) {
  static_cast<void>(((block.rows == R + 1 && (linear_few_rows<L, R + 1>(block), true)) || ...));
}

template <class L>
void linear_block(const LinearBlock& block) {
  if (block.rows <= L::kTileRowsMax) return linear_few_rows<L>(block, std::make_integer_sequence<int, L::kTileRowsMax>{});
  constexpr int O = L::tile_outputs(L::kTileRowsMax);
  const std::int64_t whole = block.out / O * O;
  linear_outputs<L, O>(block, 0, whole);
  linear_outputs<L, 1>(block, whole, block.out);
}

}  // namespace rl::kernel
