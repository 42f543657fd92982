// Private to rl/kernel: 16 fp32 lanes in plain C++, for machines without AVX2 and as the plainest
// statement of what the others do.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace rl::kernel {

/// See Avx512Lanes.
struct PortableLanes {
  float v[16];

  static constexpr int tile_outputs(int rows) { return 2; }
  static constexpr int kTileRowsMax = 2;
  static constexpr int kProductTileRows = 4;
  static constexpr int kProductTileVectors = 1;

  static PortableLanes zero() { return all(0.0F); }
  static PortableLanes all(float x) {
    return each([&](int) { return x; });
  }
  static PortableLanes load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static PortableLanes held(const PortableLanes& x) { return x; }
  static PortableLanes load_first(const float* p, std::int64_t n) {
    return each([&](int i) { return i < n ? p[i] : 0.0F; });
  }
  void store(float* p) const { store_first(p, 16); }
  void store_first(float* p, std::int64_t n) const {
    for (int i = 0; i < n; ++i) p[i] = v[i];
  }

  static PortableLanes load_int8(const std::int8_t* p) {
    return each([&](int i) { return static_cast<float>(p[i]); });
  }
  void store_int8(std::int8_t* p) const {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(v[i]);
  }

  friend PortableLanes operator+(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  friend PortableLanes operator-(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  friend PortableLanes operator*(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  friend PortableLanes operator/(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  static PortableLanes fma(const PortableLanes& a, const PortableLanes& b, const PortableLanes& c) {
    return each([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  static PortableLanes min(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static PortableLanes max(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }

  static PortableLanes scale_by_power(const PortableLanes& x, const PortableLanes& shifted,
                                      const PortableLanes& magic) {
    return each([&](int i) {
      // Unsigned, since a NaN brings any bits; the product is a NaN then whatever the factors.
      const std::uint32_t n =
          std::bit_cast<std::uint32_t>(shifted.v[i]) - std::bit_cast<std::uint32_t>(magic.v[i]);
      const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) >> 1);
      return x.v[i] * std::bit_cast<float>((half + 127U) << 23) *
             std::bit_cast<float>((n - half + 127U) << 23);
    });
  }

  static void fold4(const PortableLanes& a, const PortableLanes& b, const PortableLanes& c,
                    const PortableLanes& d, float* out) {
    out[0] = fold(a);
    out[1] = fold(b);
    out[2] = fold(c);
    out[3] = fold(d);
  }

 private:
  template <class F>
  static PortableLanes each(F&& f) {
    PortableLanes result;
    for (int i = 0; i < 16; ++i) result.v[i] = f(i);
    return result;
  }
  static float fold(PortableLanes a) {
    for (int width = 8; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) a.v[i] += a.v[i + width];
    }
    return a.v[0];
  }
};

}  // namespace rl::kernel
