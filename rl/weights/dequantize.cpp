#include "rl/weights/dequantize.h"

#include <cstdint>
#include <cstring>

#include "rl/weights/convert.h"
#include "runtime/core/check.h"

namespace rl {

namespace {

using Bytes = const std::uint8_t*;

float half_at(Bytes in) {
  std::uint16_t half;
  std::memcpy(&half, in, 2);
  return f16_to_f32(half);
}

// ---- blocks of 32: scale d, in the _1 formats also minimum m; low nibbles are elements 0-15, high
// ones 16-31 ----

void block_q4_0(Bytes in, float* out) {
  const float d = half_at(in);
  Bytes q = in + 2;
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>((q[i] & 15) - 8) * d;
    out[i + 16] = static_cast<float>((q[i] >> 4) - 8) * d;
  }
}

void block_q4_1(Bytes in, float* out) {
  const float d = half_at(in);
  const float m = half_at(in + 2);
  Bytes q = in + 4;
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(q[i] & 15) * d + m;
    out[i + 16] = static_cast<float>(q[i] >> 4) * d + m;
  }
}

// The fifth bits of a Q5 block are one 32-bit word, bit i for element i.
void block_q5_0(Bytes in, float* out) {
  const float d = half_at(in);
  std::uint32_t high;
  std::memcpy(&high, in + 2, 4);
  Bytes q = in + 6;
  for (int i = 0; i < 16; ++i) {
    int low_element = (q[i] & 15) | static_cast<int>((high >> i & 1) << 4);
    int high_element = (q[i] >> 4) | static_cast<int>((high >> (i + 16) & 1) << 4);
    out[i] = static_cast<float>(low_element - 16) * d;
    out[i + 16] = static_cast<float>(high_element - 16) * d;
  }
}

void block_q5_1(Bytes in, float* out) {
  const float d = half_at(in);
  const float m = half_at(in + 2);
  std::uint32_t high;
  std::memcpy(&high, in + 4, 4);
  Bytes q = in + 8;
  for (int i = 0; i < 16; ++i) {
    int low_element = (q[i] & 15) | static_cast<int>((high >> i & 1) << 4);
    int high_element = (q[i] >> 4) | static_cast<int>((high >> (i + 16) & 1) << 4);
    out[i] = static_cast<float>(low_element) * d + m;
    out[i + 16] = static_cast<float>(high_element) * d + m;
  }
}

void block_q8_0(Bytes in, float* out) {
  const float d = half_at(in);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<std::int8_t>(in[2 + i])) * d;
}

// ---- K-quants: blocks of 256 ----

// scales[16] (low nibble scale, high nibble minimum), 2-bit q[64], d, dmin. Groups of 16 elements.
void block_q2_k(Bytes in, float* out) {
  Bytes scales = in;
  Bytes q = in + 16;
  const float d = half_at(in + 80);
  const float dmin = half_at(in + 82);
  for (int half = 0; half < 2; ++half, q += 32) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int group = 0; group < 2; ++group) {
        const std::uint8_t scale = *scales++;
        const float dl = d * static_cast<float>(scale & 15);
        const float ml = dmin * static_cast<float>(scale >> 4);
        for (int i = 0; i < 16; ++i)
          *out++ = dl * static_cast<float>(q[group * 16 + i] >> shift & 3) - ml;
      }
    }
  }
}

// hmask[32] (third bits, inverted), 2-bit q[64], sixteen 6-bit scales in 12 bytes, d.
void block_q3_k(Bytes in, float* out) {
  Bytes high = in;
  Bytes q = in + 32;
  Bytes packed = in + 96;
  const float d = half_at(in + 108);
  int scales[16];
  for (int i = 0; i < 16; ++i) {
    int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    int top = packed[8 + i % 4] >> (2 * (i / 4)) & 3;
    scales[i] = (low | top << 4) - 32;
  }
  int next_scale = 0;
  int bit = 0;
  for (int half = 0; half < 2; ++half, q += 32) {
    for (int shift = 0; shift < 8; shift += 2, ++bit) {
      for (int group = 0; group < 2; ++group) {
        const float dl = d * static_cast<float>(scales[next_scale++]);
        for (int i = group * 16; i < group * 16 + 16; ++i) {
          int minus = (high[i] >> bit & 1) != 0 ? 0 : 4;
          *out++ = dl * static_cast<float>((q[i] >> shift & 3) - minus);
        }
      }
    }
  }
}

struct ScaleAndMin {
  int scale;
  int min;
};

// Eight 6-bit (scale, minimum) pairs in 12 bytes, as Q4_K and Q5_K store them.
ScaleAndMin scale_and_min(Bytes packed, int i) {
  if (i < 4) return {packed[i] & 63, packed[i + 4] & 63};
  return {(packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4, (packed[i + 4] >> 4) | (packed[i] >> 6)
                                                                                       << 4};
}

// d, dmin, scales[12], 4-bit q[128].
void block_q4_k(Bytes in, float* out) {
  const float d = half_at(in);
  const float dmin = half_at(in + 2);
  Bytes packed = in + 4;
  Bytes q = in + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = scale_and_min(packed, group);
    const float dl = d * static_cast<float>(scale);
    const float ml = dmin * static_cast<float>(min);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i)
      *out++ = dl * static_cast<float>(q[group / 2 * 32 + i] >> shift & 15) - ml;
  }
}

// d, dmin, scales[12], fifth bits high[32] (bit g for group g), 4-bit q[128].
void block_q5_k(Bytes in, float* out) {
  const float d = half_at(in);
  const float dmin = half_at(in + 2);
  Bytes packed = in + 4;
  Bytes high = in + 16;
  Bytes q = in + 48;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = scale_and_min(packed, group);
    const float dl = d * static_cast<float>(scale);
    const float ml = dmin * static_cast<float>(min);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      int value = (q[group / 2 * 32 + i] >> shift & 15) | (high[i] >> group & 1) << 4;
      *out++ = dl * static_cast<float>(value) - ml;
    }
  }
}

// low nibbles[128], upper two bits[64], int8 scales[16], d. Each half of 128 elements is four
// quarters of 32.
void block_q6_k(Bytes in, float* out) {
  const float d = half_at(in + 208);
  for (int half = 0; half < 2; ++half) {
    Bytes low = in + 64 * half;
    Bytes high = in + 128 + 32 * half;
    Bytes scales = in + 192 + 8 * half;
    for (int quarter = 0; quarter < 4; ++quarter) {
      const int low_offset = quarter % 2 * 32;
      const int low_shift = quarter / 2 * 4;
      for (int i = 0; i < 32; ++i) {
        int value = (low[low_offset + i] >> low_shift & 15) | (high[i] >> (2 * quarter) & 3) << 4;
        int scale = static_cast<std::int8_t>(scales[quarter * 2 + i / 16]);
        *out++ = d * static_cast<float>(scale) * static_cast<float>(value - 32);
      }
    }
  }
}

template <void (*kBlock)(Bytes, float*)>
void each_block(DType dtype, const std::byte* in, std::span<float> out) {
  const DTypeBlock block = dtype_block(dtype);
  auto next = reinterpret_cast<Bytes>(in);
  for (std::size_t i = 0; i < out.size();
       i += static_cast<std::size_t>(block.elements), next += block.bytes) {
    kBlock(next, out.data() + i);
  }
}

}  // namespace

void dequantize(DType dtype, const std::byte* in, std::span<float> out) {
  CHECK(out.size() % static_cast<std::size_t>(dtype_block(dtype).elements) == 0);
  switch (dtype) {
    case DType::kQ4_0: return each_block<block_q4_0>(dtype, in, out);
    case DType::kQ4_1: return each_block<block_q4_1>(dtype, in, out);
    case DType::kQ5_0: return each_block<block_q5_0>(dtype, in, out);
    case DType::kQ5_1: return each_block<block_q5_1>(dtype, in, out);
    case DType::kQ8_0: return each_block<block_q8_0>(dtype, in, out);
    case DType::kQ2_K: return each_block<block_q2_k>(dtype, in, out);
    case DType::kQ3_K: return each_block<block_q3_k>(dtype, in, out);
    case DType::kQ4_K: return each_block<block_q4_k>(dtype, in, out);
    case DType::kQ5_K: return each_block<block_q5_k>(dtype, in, out);
    case DType::kQ6_K: return each_block<block_q6_k>(dtype, in, out);
    default: runtime::check_failed(__FILE__, __LINE__, "dequantize of a dtype without blocks");
  }
}

}  // namespace rl
