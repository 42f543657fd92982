#include "rl/weights/convert.h"

#include <bit>
#include <cstring>

#include "rl/weights/dequantize.h"
#include "runtime/core/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rl {

namespace {

template <class T>
void convert_numbers(const std::byte* in, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, in + i * sizeof(T), sizeof(T));  // a mapped tensor may start anywhere
    out[i] = static_cast<float>(value);
  }
}

void convert_bf16(const std::byte* in, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t high;
    std::memcpy(&high, in + i * 2, 2);
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(high) << 16);
  }
}

void convert_f16_portable(const std::byte* in, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half;
    std::memcpy(&half, in + i * 2, 2);
    out[i] = f16_to_f32(half);
  }
}

#if defined(__x86_64__)
// "f16c" is no name that __builtin_cpu_supports knows everywhere; every CPU with AVX2 has it.
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

__attribute__((target("avx,f16c"))) void convert_f16_vector(const std::byte* in,
                                                            std::span<float> out) {
  std::size_t i = 0;
  for (; i + 8 <= out.size(); i += 8) {
    __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * 2));
    _mm256_storeu_ps(out.data() + i, _mm256_cvtph_ps(halves));
  }
  convert_f16_portable(in + i * 2, out.subspan(i));
}
#endif

void convert_f16(const std::byte* in, std::span<float> out) {
#if defined(__x86_64__)
  if (has_f16c()) return convert_f16_vector(in, out);
#endif
  convert_f16_portable(in, out);
}

}  // namespace

float f16_to_f32(std::uint16_t half) {
  std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >=
      0x7c00u) {  // infinity, or a NaN whose payload is kept and made quiet as the hardware does
    std::uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13) | quiet);
  }
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  float value = static_cast<float>(magnitude) * 0x1p-24f;  // subnormal: a multiple of 2^-24
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u | static_cast<std::uint16_t>(magnitude >> 13 & 0x3ffu);  // NaN, quiet
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;                             // 65536 and more
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 leaves the multiple of 2^-24 in the last
                                  // bits, rounded by the FPU
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

namespace {

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // rounding could make a NaN infinite
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

template <std::uint16_t (*kConvert)(float)>
void convert_halves(std::span<const float> in, std::byte* out) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::uint16_t half = kConvert(in[i]);
    std::memcpy(out + i * 2, &half, 2);
  }
}

#if defined(__x86_64__)
// The bits of f32_to_f16, of NaN as well.
__attribute__((target("avx,f16c"))) void convert_to_f16_vector(std::span<const float> in,
                                                               std::byte* out) {
  std::size_t i = 0;
  for (; i + 8 <= in.size(); i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(in.data() + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * 2), halves);
  }
  convert_halves<f32_to_f16>(in.subspan(i), out + i * 2);
}
#endif

void convert_to_f16(std::span<const float> in, std::byte* out) {
#if defined(__x86_64__)
  if (has_f16c()) return convert_to_f16_vector(in, out);
#endif
  convert_halves<f32_to_f16>(in, out);
}

}  // namespace

void convert_from_f32(DType dtype, std::span<const float> in, std::byte* out) {
  if (dtype == DType::kF16) return convert_to_f16(in, out);
  if (dtype == DType::kBF16) return convert_halves<f32_to_bf16>(in, out);
  CHECK(dtype == DType::kF32);
  if (!in.empty()) std::memcpy(out, in.data(), in.size_bytes());
}

void convert_to_f32(DType dtype, const std::byte* in, std::span<float> out) {
  switch (dtype) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), in, out.size_bytes());
      return;
    case DType::kF64: return convert_numbers<double>(in, out);
    case DType::kF16: return convert_f16(in, out);
    case DType::kBF16: return convert_bf16(in, out);
    case DType::kI64: return convert_numbers<std::int64_t>(in, out);
    case DType::kI32: return convert_numbers<std::int32_t>(in, out);
    case DType::kI16: return convert_numbers<std::int16_t>(in, out);
    case DType::kI8: return convert_numbers<std::int8_t>(in, out);
    case DType::kU64: return convert_numbers<std::uint64_t>(in, out);
    case DType::kU32: return convert_numbers<std::uint32_t>(in, out);
    case DType::kU16: return convert_numbers<std::uint16_t>(in, out);
    case DType::kU8: return convert_numbers<std::uint8_t>(in, out);
    case DType::kBool:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] == std::byte{0} ? 0.0f : 1.0f;
      return;
    default: CHECK(dtype_block(dtype).elements > 1); return dequantize(dtype, in, out);
  }
}

}  // namespace rl
