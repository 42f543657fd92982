// Private to rl/kernel: row-wise and element-wise loops, written once over a Lanes type.
// A product that is added to something is always an explicit fma: the compiler must have no choice of rounding.
// No function of the standard library that the compiler may emit out of line is used in the *_generic.h: the linker keeps one copy of
// it for the whole program, and that copy must not need AVX.
#pragma once

#include <cmath>
#include <cstdint>

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {

inline constexpr float kMinusInfinity = -__builtin_inff();

/// One vector folded to a float; the others of fold4 are free of charge next to the loop before it.
template <class L>
[[gnu::always_inline]] inline float fold(const L& sums) {
  float folded[4];
  L::fold4(sums, sums, sums, sums, folded);
  return folded[0];
}

/// exp: x = n ln 2 + r with |r| <= ln 2 / 2, then exp(r) by its Taylor series to r^7 / 7! (remainder below 6e-9) and times 2^n.
template <class L>
[[gnu::always_inline]] inline L exp_lanes(L x) {
  x = L::max(L::all(-104.0F), L::min(L::all(89.0F), x));  // beyond these the result is 0 or infinity anyway
  const L magic = L::all(12582912.0F);                    // 1.5 * 2^23: adding it rounds to an integer
  const L shifted = L::fma(x, L::all(1.44269504F), magic);
  const L n = shifted - magic;
  L r = L::fma(n, L::all(-0.693359375F), x);        // ln 2 in two parts; the first has 9 bits, so n times it is exact
  r = L::fma(n, L::all(2.12194440e-4F), r);
  L p = L::all(1.0F / 5040);
  p = L::fma(p, r, L::all(1.0F / 720));
  p = L::fma(p, r, L::all(1.0F / 120));
  p = L::fma(p, r, L::all(1.0F / 24));
  p = L::fma(p, r, L::all(1.0F / 6));
  p = L::fma(p, r, L::all(0.5F));
  p = L::fma(p, r, L::all(1.0F));
  p = L::fma(p, r, L::all(1.0F));
  return L::scale_by_power(p, shifted, magic);
}

template <class L>
void exp_values(const float* x, std::int64_t count, float* y) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) exp_lanes(L::load(x + i)).store(y + i);
  if (i < count) exp_lanes(L::load_first(x + i, count - i)).store_first(y + i, count - i);
}

template <class L>
[[gnu::always_inline]] inline L silu_mul_lanes(L gate, L up) {
  const L one = L::all(1.0F);
  return gate / (one + exp_lanes(L::zero() - gate)) * up;
}

template <class L>
void silu_mul_values(const float* gate, const float* up, std::int64_t count, float* y) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) silu_mul_lanes(L::load(gate + i), L::load(up + i)).store(y + i);
  if (i == count) return;
  const std::int64_t rest = count - i;
  silu_mul_lanes(L::load_first(gate + i, rest), L::load_first(up + i, rest)).store_first(y + i, rest);
}

template <class L>
void add_values(const float* a, const float* b, std::int64_t count, float* y) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) (L::load(a + i) + L::load(b + i)).store(y + i);
  if (i < count) (L::load_first(a + i, count - i) + L::load_first(b + i, count - i)).store_first(y + i, count - i);
}

template <class L>
float rms_norm_row(const float* x, std::int64_t size, const float* weight, float eps, float* y) {
  const std::int64_t whole = size / 16 * 16;
  L squares = L::zero();
  for (std::int64_t i = 0; i < whole; i += 16) {
    const L v = L::load(x + i);
    squares = L::fma(v, v, squares);
  }
  if (whole < size) {
    const L v = L::load_first(x + whole, size - whole);
    squares = L::fma(v, v, squares);
  }
  const float inverse_rms = 1.0F / __builtin_sqrtf(fold(squares) / static_cast<float>(size) + eps);
  const L scale = L::all(inverse_rms);
  for (std::int64_t i = 0; i < whole; i += 16) ((L::load(x + i) * scale) * L::load(weight + i)).store(y + i);
  if (whole < size) {
    const std::int64_t rest = size - whole;
    ((L::load_first(x + whole, rest) * scale) * L::load_first(weight + whole, rest)).store_first(y + whole, rest);
  }
  return inverse_rms;
}

/// y = (a cos - b sin, b cos + a sin) for the halves a, b of a head.
template <class L>
void rope_head(const float* x, std::int64_t half, const float* cos, const float* sin, float* y) {
  for (std::int64_t i = 0; i < half; i += 16) {
    const std::int64_t n = half - i < 16 ? half - i : 16;
    const L a = L::load_first(x + i, n), b = L::load_first(x + half + i, n);
    const L c = L::load_first(cos + i, n), s = L::load_first(sin + i, n);
    L::fma(a, c, L::zero() - b * s).store_first(y + i, n);
    L::fma(b, c, a * s).store_first(y + half + i, n);
  }
}

/// Maximum of the lanes and of `rest` floats; NaNs may be lost here, they come back in the sum of exponentials.
template <class L>
float maximum_of(const float* x, std::int64_t count, float scale) {
  L lanes = L::all(kMinusInfinity);
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) lanes = L::max(lanes, L::load(x + i) * L::all(scale));
  float candidates[16];
  lanes.store(candidates);
  float maximum = kMinusInfinity;
  for (float candidate : candidates) maximum = candidate > maximum ? candidate : maximum;
  for (; i < count; ++i) maximum = x[i] * scale > maximum ? x[i] * scale : maximum;
  return maximum;
}

template <class L>
SoftmaxSums softmax_sums(const float* logits, std::int64_t count, float scale) {
  const float maximum = maximum_of<L>(logits, count, scale);
  const L negative_maximum = L::all(-maximum), factor = L::all(scale), floor = L::all(-104.0F);
  L sum = L::zero(), weighted = L::zero();
  for (std::int64_t i = 0; i < count; i += 16) {
    float padded[16];
    const float* from = logits + i;
    if (i + 16 > count) {  // the last lanes become exp(-infinity) = 0
      for (int lane = 0; lane < 16; ++lane) {
        padded[lane] = i + lane < count ? logits[i + lane] : kMinusInfinity;
      }
      from = padded;
    }
    const L centred = L::max(floor, L::fma(L::load(from), factor, negative_maximum));
    const L e = exp_lanes(centred);
    sum = sum + e;
    weighted = L::fma(e, centred, weighted);
  }
  return {.maximum = maximum, .sum = fold(sum), .weighted = fold(weighted)};
}

}  // namespace rl::kernel
