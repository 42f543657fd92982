// Private to rl/kernel: row-wise and element-wise loops, written once over a Lanes type.
// A product that is added to something is always an explicit fma: the compiler must have no choice
// of rounding. No function of the standard library that the compiler may emit out of line is used
// in the *_generic.h. The linker keeps one copy of it for the whole program, and that copy must not
// need AVX.
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

/// exp: x = n ln 2 + r with |r| <= ln 2 / 2, then exp(r) by its Taylor series to r^7 / 7!
/// (remainder below 6e-9) and times 2^n.
template <class L>
[[gnu::always_inline]] inline L exp_lanes(L x) {
  x = L::max(L::all(-104.0F),
             L::min(L::all(89.0F), x));  // beyond these the result is 0 or infinity anyway
  const L magic = L::all(12582912.0F);   // 1.5 * 2^23: adding it rounds to an integer
  const L shifted = L::fma(x, L::all(1.44269504F), magic);
  const L n = shifted - magic;
  L r = L::fma(n, L::all(-0.693359375F),
               x);  // ln 2 in two parts; the first has 9 bits, so n times it is exact
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
[[gnu::always_inline]] inline L silu_lanes(L x) {
  return x / (L::all(1.0F) + exp_lanes(L::zero() - x));
}

template <class L>
[[gnu::always_inline]] inline L sigmoid_lanes(L x) {
  return L::all(1.0F) / (L::all(1.0F) + exp_lanes(L::zero() - x));
}

/// 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class L>
[[gnu::always_inline]] inline L gelu_tanh_lanes(L x) {
  const L cubic = L::fma(x * x * L::all(0.044715F), x, x);
  return x / (L::all(1.0F) + exp_lanes(cubic * L::all(-1.59576912F)));
}

/// erfc(z) / exp(-z^2) for z >= 0, by Abramowitz and Stegun 7.1.26.
template <class L>
[[gnu::always_inline]] inline L erfc_factor(L z) {
  const L t = L::all(1.0F) / L::fma(z, L::all(0.3275911F), L::all(1.0F));
  L p = L::fma(t, L::all(1.061405429F), L::all(-1.453152027F));
  p = L::fma(p, t, L::all(1.421413741F));
  p = L::fma(p, t, L::all(-0.284496736F));
  p = L::fma(p, t, L::all(0.254829592F));
  return p * t;
}

/// max(x, 0) - |x| erfc(|x| / sqrt 2) / 2.
template <class L>
[[gnu::always_inline]] inline L gelu_lanes(L x) {
  const L size = L::max(x, L::zero() - x);
  const L z = size * L::all(0.707106781F);
  const L erfc = erfc_factor(z) * exp_lanes(z * (L::zero() - z));
  return L::fma(size * L::all(-0.5F), erfc, L::max(L::zero(), x));
}

/// An activation and its derivative.
template <class L>
struct Slope {
  L value;
  L derivative;
};

template <class L>
[[gnu::always_inline]] inline Slope<L> sigmoid_slope(L x) {
  const L s = sigmoid_lanes(x);
  return {s, s * (L::all(1.0F) - s)};
}

template <class L>
[[gnu::always_inline]] inline Slope<L> silu_slope(L x) {
  const L s = sigmoid_lanes(x);
  return {silu_lanes(x), s * L::fma(x, L::all(1.0F) - s, L::all(1.0F))};
}

/// With s = 1 / (1 + exp(-2 u)): s + x s (1 - s) 2 u'.
template <class L>
[[gnu::always_inline]] inline Slope<L> gelu_tanh_slope(L x) {
  const L square = x * x;
  const L cubic = L::fma(square * L::all(0.044715F), x, x);
  const L s = L::all(1.0F) / (L::all(1.0F) + exp_lanes(cubic * L::all(-1.59576912F)));
  const L inner = L::fma(square, L::all(0.2140644F), L::all(1.59576912F));
  return {gelu_tanh_lanes(x), L::fma(x * inner, s * (L::all(1.0F) - s), s)};
}

/// Phi(x) + x phi(x), with Phi(x) = 1/2 + sign(x) (1 - erfc(|x| / sqrt 2)) / 2.
template <class L>
[[gnu::always_inline]] inline Slope<L> gelu_slope(L x) {
  const L size = L::max(x, L::zero() - x);
  const L z = size * L::all(0.707106781F);
  const L falling = exp_lanes(z * (L::zero() - z));
  const L erfc = erfc_factor(z) * falling;
  const L sign = x / L::max(size, L::all(1e-30F));
  const L below = L::fma(sign, L::fma(L::all(-0.5F), erfc, L::all(0.5F)), L::all(0.5F));
  return {gelu_lanes(x), L::fma(x * L::all(0.398942280F), falling, below)};
}

template <class L, Activation A>
[[gnu::always_inline]] inline L activate_lanes(L x) {
  if constexpr (A == Activation::kSilu)
    return silu_lanes(x);
  else if constexpr (A == Activation::kGelu)
    return gelu_lanes(x);
  else if constexpr (A == Activation::kGeluTanh)
    return gelu_tanh_lanes(x);
  else if constexpr (A == Activation::kSigmoid)
    return sigmoid_lanes(x);
  else
    return L::max(L::zero(), x);
}

template <class L, Activation A>
void activate_loop(const float* gate, const float* up, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; i += 16) {
    const std::int64_t rest = count - i < 16 ? count - i : 16;
    const bool whole = rest == 16;
    L v = activate_lanes<L, A>(whole ? L::load(gate + i) : L::load_first(gate + i, rest));
    if (up != nullptr) v = v * (whole ? L::load(up + i) : L::load_first(up + i, rest));
    whole ? v.store(y + i) : v.store_first(y + i, rest);
  }
}

template <class L>
void activate_values(Activation activation, const float* gate, const float* up, std::int64_t count,
                     float* y) {
  switch (activation) {
    case Activation::kSilu: return activate_loop<L, Activation::kSilu>(gate, up, count, y);
    case Activation::kGelu: return activate_loop<L, Activation::kGelu>(gate, up, count, y);
    case Activation::kGeluTanh: return activate_loop<L, Activation::kGeluTanh>(gate, up, count, y);
    case Activation::kRelu: return activate_loop<L, Activation::kRelu>(gate, up, count, y);
    case Activation::kSigmoid: return activate_loop<L, Activation::kSigmoid>(gate, up, count, y);
  }
}

template <class L, Activation A>
[[gnu::always_inline]] inline Slope<L> activation_slope(L x) {
  if constexpr (A == Activation::kSilu)
    return silu_slope(x);
  else if constexpr (A == Activation::kGelu)
    return gelu_slope(x);
  else if constexpr (A == Activation::kGeluTanh)
    return gelu_tanh_slope(x);
  else
    return sigmoid_slope(x);
}

template <class L, Activation A>
void activate_backward_loop(const ActivatedGradient& g) {
  for (std::int64_t i = 0; i < g.count; i += 16) {
    const std::int64_t rest = g.count - i < 16 ? g.count - i : 16;
    const bool whole = rest == 16;
    const auto load = [&](const float* from) {
      return whole ? L::load(from + i) : L::load_first(from + i, rest);
    };
    const auto store = [&](L v, float* to) {
      whole ? v.store(to + i) : v.store_first(to + i, rest);
    };
    const Slope<L> slope = activation_slope<L, A>(load(g.gate));
    const L dp = load(g.dp);
    if (g.up == nullptr) {
      store(slope.value, g.p);
      store(slope.derivative * dp, g.d_gate);
    } else {
      const L up = load(g.up);
      store(slope.value * up, g.p);
      store(slope.value * dp, g.d_up);
      store(slope.derivative * (dp * up), g.d_gate);
    }
  }
}

template <class L>
void relu_backward(const ActivatedGradient& g) {
  for (std::int64_t i = 0; i < g.count; ++i) {
    const bool open = g.gate[i] > 0.0F;
    const float value = open ? g.gate[i] : 0.0F;
    const float up = g.up == nullptr ? 1.0F : g.up[i];
    const float dp = g.dp[i];
    g.p[i] = value * up;
    if (g.up != nullptr) g.d_up[i] = value * dp;
    g.d_gate[i] = open ? dp * up : 0.0F;
  }
}

template <class L>
void activate_backward_values(Activation activation, const ActivatedGradient& g) {
  switch (activation) {
    case Activation::kSilu: return activate_backward_loop<L, Activation::kSilu>(g);
    case Activation::kGelu: return activate_backward_loop<L, Activation::kGelu>(g);
    case Activation::kGeluTanh: return activate_backward_loop<L, Activation::kGeluTanh>(g);
    case Activation::kSigmoid: return activate_backward_loop<L, Activation::kSigmoid>(g);
    case Activation::kRelu: return relu_backward<L>(g);
  }
}

/// cap tanh(x / cap) = cap - 2 cap / (1 + exp(2 x / cap)).
template <class L>
[[gnu::always_inline]] inline L softcap_lanes(L x, float cap) {
  return L::all(cap) - L::all(2.0F * cap) / (L::all(1.0F) + exp_lanes(x * L::all(2.0F / cap)));
}

template <class L>
void softcap_values(const float* x, std::int64_t count, float cap, float* y) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) softcap_lanes(L::load(x + i), cap).store(y + i);
  if (i < count) softcap_lanes(L::load_first(x + i, count - i), cap).store_first(y + i, count - i);
}

template <class L>
void add_values(const float* a, const float* b, std::int64_t count, float* y) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) (L::load(a + i) + L::load(b + i)).store(y + i);
  if (i < count)
    (L::load_first(a + i, count - i) + L::load_first(b + i, count - i))
        .store_first(y + i, count - i);
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
  for (std::int64_t i = 0; i < whole; i += 16)
    ((L::load(x + i) * scale) * L::load(weight + i)).store(y + i);
  if (whole < size) {
    const std::int64_t rest = size - whole;
    ((L::load_first(x + whole, rest) * scale) * L::load_first(weight + whole, rest))
        .store_first(y + whole, rest);
  }
  return inverse_rms;
}

/// The mean first, then the squares of what is left of it: one pass over both would lose what they
/// have in common. `moments`, unless null, receives the mean and 1 / standard deviation.
template <class L>
void layer_norm_row(const float* x, std::int64_t size, const float* weight, const float* bias,
                    float eps, float* y, float* moments) {
  const std::int64_t whole = size / 16 * 16;
  const std::int64_t rest = size - whole;
  L sum = L::zero();
  for (std::int64_t i = 0; i < whole; i += 16) sum = sum + L::load(x + i);
  if (rest > 0) sum = sum + L::load_first(x + whole, rest);
  const float mean = fold(sum) / static_cast<float>(size);
  const L centre = L::all(mean);
  L squares = L::zero();
  for (std::int64_t i = 0; i < whole; i += 16) {
    const L v = L::load(x + i) - centre;
    squares = L::fma(v, v, squares);
  }
  if (rest > 0) {
    float padded[16];
    for (int lane = 0; lane < 16; ++lane) padded[lane] = lane < rest ? x[whole + lane] : mean;
    const L v = L::load(padded) - centre;
    squares = L::fma(v, v, squares);
  }
  const float inverse = 1.0F / __builtin_sqrtf(fold(squares) / static_cast<float>(size) + eps);
  const L scale = L::all(inverse);
  for (std::int64_t i = 0; i < whole; i += 16) {
    L::fma((L::load(x + i) - centre) * scale, L::load(weight + i), L::load(bias + i)).store(y + i);
  }
  if (rest > 0) {
    L::fma((L::load_first(x + whole, rest) - centre) * scale, L::load_first(weight + whole, rest),
           L::load_first(bias + whole, rest))
        .store_first(y + whole, rest);
  }
  if (moments != nullptr) {
    moments[0] = mean;
    moments[1] = inverse;
  }
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

/// Maximum of the lanes and of `rest` floats; NaNs may be lost here, they come back in the sum of
/// exponentials.
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
