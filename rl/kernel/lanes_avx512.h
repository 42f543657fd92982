// Private to rl/kernel: 16 fp32 lanes in one AVX-512 register. Included by kernels_avx512.cpp only,
// after its target pragma.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace rl::kernel {

/// The operations that *_generic.h are written in; each Lanes type gives the same bits.
struct Avx512Lanes {
  __m512 v;

  /// Outputs of a linear tile of `rows` rows: accumulators, weights and one input stay within 32
  /// registers.
  static constexpr int tile_outputs(int rows) { return rows == 1 ? 8 : 6; }
  static constexpr int kTileRowsMax = 4;

  /// Of a tile of `multiply`: rows, and vectors of columns.
  static constexpr int kProductTileRows = 12;
  static constexpr int kProductTileVectors = 2;

  [[gnu::always_inline]] static inline Avx512Lanes zero() { return {_mm512_setzero_ps()}; }
  [[gnu::always_inline]] static inline Avx512Lanes all(float x) { return {_mm512_set1_ps(x)}; }
  [[gnu::always_inline]] static inline Avx512Lanes load(const float* p) {
    return {_mm512_loadu_ps(p)};
  }
  /// x in a register. A compiler that reads it from memory again for each product it is in makes
  /// loads the limit, with one a cycle.
  [[gnu::always_inline]] static inline Avx512Lanes held(Avx512Lanes x) {
    asm("" : "+v"(x.v));
    return x;
  }
  /// The first n of 16 floats, zeros after; nothing beyond them is read.
  [[gnu::always_inline]] static inline Avx512Lanes load_first(const float* p, std::int64_t n) {
    return {_mm512_maskz_loadu_ps(mask(n), p)};
  }
  [[gnu::always_inline]] inline void store(float* p) const { _mm512_storeu_ps(p, v); }
  [[gnu::always_inline]] inline void store_first(float* p, std::int64_t n) const {
    _mm512_mask_storeu_ps(p, mask(n), v);
  }

  /// 16 signed bytes.
  [[gnu::always_inline]] static inline Avx512Lanes load_int8(const std::int8_t* p) {
    return {_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  /// Integers in [-128, 127] as 16 bytes.
  [[gnu::always_inline]] inline void store_int8(std::int8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
  }

  [[gnu::always_inline]] friend inline Avx512Lanes operator+(Avx512Lanes a, Avx512Lanes b) {
    return {_mm512_add_ps(a.v, b.v)};
  }
  [[gnu::always_inline]] friend inline Avx512Lanes operator-(Avx512Lanes a, Avx512Lanes b) {
    return {_mm512_sub_ps(a.v, b.v)};
  }
  [[gnu::always_inline]] friend inline Avx512Lanes operator*(Avx512Lanes a, Avx512Lanes b) {
    return {_mm512_mul_ps(a.v, b.v)};
  }
  [[gnu::always_inline]] friend inline Avx512Lanes operator/(Avx512Lanes a, Avx512Lanes b) {
    return {_mm512_div_ps(a.v, b.v)};
  }
  /// a * b + c, rounded once.
  [[gnu::always_inline]] static inline Avx512Lanes fma(Avx512Lanes a, Avx512Lanes b,
                                                       Avx512Lanes c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  /// a < b ? a : b, so that a NaN in b stays.
  [[gnu::always_inline]] static inline Avx512Lanes min(Avx512Lanes a, Avx512Lanes b) {
    return {_mm512_min_ps(a.v, b.v)};
  }
  /// a > b ? a : b.
  [[gnu::always_inline]] static inline Avx512Lanes max(Avx512Lanes a, Avx512Lanes b) {
    return {_mm512_max_ps(a.v, b.v)};
  }

  /// x * 2^n for the integer n = bits(shifted) - bits(magic), in two factors so that the ends of
  /// the range come out right.
  [[gnu::always_inline]] static inline Avx512Lanes scale_by_power(Avx512Lanes x,
                                                                  Avx512Lanes shifted,
                                                                  Avx512Lanes magic) {
    const __m512i n =
        _mm512_sub_epi32(_mm512_castps_si512(shifted.v), _mm512_castps_si512(magic.v));
    const __m512i half = _mm512_srai_epi32(n, 1);
    const __m512i bias = _mm512_set1_epi32(127);
    const __m512i first = _mm512_slli_epi32(_mm512_add_epi32(half, bias), 23);
    const __m512i second = _mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(n, half), bias), 23);
    return {
        _mm512_mul_ps(_mm512_mul_ps(x.v, _mm512_castsi512_ps(first)), _mm512_castsi512_ps(second))};
  }

  /// out[i] = sum of the lanes of vector i, folded 16 -> 8 -> 4 -> 2 -> 1.
  [[gnu::always_inline]] static inline void fold4(Avx512Lanes a, Avx512Lanes b, Avx512Lanes c,
                                                  Avx512Lanes d, float* out) {
    const __m256 a8 = halves(a), b8 = halves(b), c8 = halves(c), d8 = halves(d);
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
  [[gnu::always_inline]] static inline __mmask16 mask(std::int64_t n) {
    return static_cast<__mmask16>((1u << n) - 1);
  }
  [[gnu::always_inline]] static inline __m256 halves(Avx512Lanes a) {
    return _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  }
};

}  // namespace rl::kernel
