// Private to rl/kernel: 16 fp32 lanes in two AVX2 registers. Included by kernels_avx2.cpp only,
// after its target pragma.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace rl::kernel {

/// See Avx512Lanes.
struct Avx2Lanes {
  __m256 lo;
  __m256 hi;

  /// Two registers a vector: six accumulators, so that weights and an input still fit.
  static constexpr int tile_outputs(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 2; }
  static constexpr int kTileRowsMax = 3;
  static constexpr int kProductTileRows = 6;
  static constexpr int kProductTileVectors = 1;

  [[gnu::always_inline]] static inline Avx2Lanes zero() {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  [[gnu::always_inline]] static inline Avx2Lanes all(float x) {
    return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
  }
  [[gnu::always_inline]] static inline Avx2Lanes load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  /// As it comes: with few registers a factor is better read again.
  [[gnu::always_inline]] static inline Avx2Lanes held(Avx2Lanes x) { return x; }
  [[gnu::always_inline]] static inline Avx2Lanes load_first(const float* p, std::int64_t n) {
    return {_mm256_maskload_ps(p, mask(n)),
            n > 8 ? _mm256_maskload_ps(p + 8, mask(n - 8)) : _mm256_setzero_ps()};
  }
  [[gnu::always_inline]] inline void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  [[gnu::always_inline]] inline void store_first(float* p, std::int64_t n) const {
    _mm256_maskstore_ps(p, mask(n), lo);
    if (n > 8) _mm256_maskstore_ps(p + 8, mask(n - 8), hi);
  }

  [[gnu::always_inline]] static inline Avx2Lanes load_int8(const std::int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  [[gnu::always_inline]] inline void store_int8(std::int8_t* p) const {
    const __m256i a = _mm256_cvtps_epi32(lo), b = _mm256_cvtps_epi32(hi);
    const __m128i first =
        _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i second =
        _mm_packs_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(first, second));
  }

  [[gnu::always_inline]] friend inline Avx2Lanes operator+(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] friend inline Avx2Lanes operator-(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] friend inline Avx2Lanes operator*(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] friend inline Avx2Lanes operator/(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static inline Avx2Lanes fma(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  [[gnu::always_inline]] static inline Avx2Lanes min(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static inline Avx2Lanes max(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }

  [[gnu::always_inline]] static inline Avx2Lanes scale_by_power(Avx2Lanes x, Avx2Lanes shifted,
                                                                Avx2Lanes magic) {
    return {scale_half(x.lo, shifted.lo, magic.lo), scale_half(x.hi, shifted.hi, magic.hi)};
  }

  [[gnu::always_inline]] static inline void fold4(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c,
                                                  Avx2Lanes d, float* out) {
    const __m256 a8 = _mm256_add_ps(a.lo, a.hi), b8 = _mm256_add_ps(b.lo, b.hi);
    const __m256 c8 = _mm256_add_ps(c.lo, c.hi), d8 = _mm256_add_ps(d.lo, d.hi);
    const __m256 ab =
        _mm256_add_ps(_mm256_permute2f128_ps(a8, b8, 0x20), _mm256_permute2f128_ps(a8, b8, 0x31));
    const __m256 cd =
        _mm256_add_ps(_mm256_permute2f128_ps(c8, d8, 0x20), _mm256_permute2f128_ps(c8, d8, 0x31));
    const __m256 acbd =
        _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
    const __m128 ac = _mm256_castps256_ps128(acbd), bd = _mm256_extractf128_ps(acbd, 1);
    const __m128 sums =
        _mm_add_ps(_mm_shuffle_ps(ac, bd, 0x88), _mm_shuffle_ps(ac, bd, 0xDD));  // a, c, b, d
    _mm_storeu_ps(out, _mm_shuffle_ps(sums, sums, 0xD8));
  }

 private:
  [[gnu::always_inline]] static inline __m256i mask(std::int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  [[gnu::always_inline]] static inline __m256 scale_half(__m256 x, __m256 shifted, __m256 magic) {
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(magic));
    const __m256i half = _mm256_srai_epi32(n, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
  }
};

}  // namespace rl::kernel
