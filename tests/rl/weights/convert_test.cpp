#include "rl/weights/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "test_files.h"

namespace rl {
namespace {

TEST(Convert, HalfCoversEveryKindOfNumber) {
  EXPECT_EQ(f16_to_f32(0x0000), 0.0f);
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0xc000), -2.0f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);         // smallest subnormal
  EXPECT_EQ(f16_to_f32(0x03ff), 1023 * 0x1p-24f);  // largest subnormal
  EXPECT_EQ(f16_to_f32(0x0400), 0x1p-14f);         // smallest normal
  EXPECT_EQ(f16_to_f32(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7e01)));
}

TEST(Convert, RoundingUndoesReading) {
  for (int half = 0; half < 65536; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    const float value = f16_to_f32(bits);
    if (!std::isnan(value)) {
      ASSERT_EQ(f32_to_f16(value), bits) << half;
    } else {
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << half;
    }
  }
}

TEST(Convert, RoundsToNearestTiesToEven) {
  const auto f16 = [](float value) { return f16_to_f32(f32_to_f16(value)); };
  EXPECT_EQ(f16(1.0F + 0x1p-11F), 1.0F);                // a tie, to even
  EXPECT_EQ(f16(1.0F + 3 * 0x1p-11F), 1.0F + 0x1p-9F);  // a tie, to even
  EXPECT_EQ(f16(1.0F + 0x1.1p-11F), 1.0F + 0x1p-10F);   // above the tie
  EXPECT_EQ(f16(65519.0F), 65504.0F);
  EXPECT_EQ(f16(65520.0F), std::numeric_limits<float>::infinity());
  EXPECT_EQ(f16(-1e30F), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(f16(0x1p-25F), 0.0F);  // a tie with zero
  EXPECT_EQ(f16(0x1.8p-25F), 0x1p-24F);
  EXPECT_EQ(f16(3 * 0x1p-25F), 0x1p-23F);  // a tie of subnormals, to even
  EXPECT_TRUE(std::signbit(f16(-0.0F)));
  const auto bf16 = [](float value) {
    std::byte bytes[2];
    convert_from_f32(DType::kBF16, {&value, 1}, bytes);
    float out;
    convert_to_f32(DType::kBF16, bytes, {&out, 1});
    return out;
  };
  EXPECT_EQ(bf16(1.0F + 0x1p-8F), 1.0F);
  EXPECT_EQ(bf16(1.0F + 3 * 0x1p-8F), 1.0F + 0x1p-6F);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(bf16(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(bf16(-std::numeric_limits<float>::infinity()), -std::numeric_limits<float>::infinity());
}

// The vector path of the CPU at hand and the portable one must agree on all 65,536 halves, at any
// alignment and length.
TEST(Convert, HalfArraysEqualSingleHalves) {
  std::string bytes(1, 'x');
  for (int half = 0; half < 65536; ++half) bytes += testing::raw(static_cast<std::uint16_t>(half));
  std::vector<float> out(65535);  // not a multiple of the vector width
  convert_to_f32(DType::kF16, reinterpret_cast<const std::byte*>(bytes.data()) + 1, out);
  for (int half = 0; half < 65535; ++half) {
    float expected = f16_to_f32(static_cast<std::uint16_t>(half));
    ASSERT_EQ(std::memcmp(&out[static_cast<std::size_t>(half)], &expected, 4), 0) << half;
  }
}

// So must they on floats of every kind: each exponent with bits around every border of rounding.
TEST(Convert, ArraysOfHalvesAreRoundedAsSingleOnes) {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0xffffu})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  }
  values.push_back(1.0F);  // not a multiple of the vector width
  std::vector<std::byte> bytes(1 + values.size() * 2);
  convert_from_f32(DType::kF16, values, bytes.data() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 1 + i * 2, sizeof half);
    ASSERT_EQ(half, f32_to_f16(values[i])) << std::bit_cast<std::uint32_t>(values[i]);
  }
}

template <class T>
float convert_one(DType dtype, T value) {
  std::string bytes = testing::raw(value);
  float out = 0;
  convert_to_f32(dtype, reinterpret_cast<const std::byte*>(bytes.data()), std::span(&out, 1));
  return out;
}

TEST(Convert, EveryPlainDtype) {
  EXPECT_EQ(convert_one(DType::kF64, -0.5), -0.5f);
  EXPECT_EQ(convert_one(DType::kF32, 3.25f), 3.25f);
  EXPECT_EQ(convert_one(DType::kBF16, std::uint16_t{0xc040}), -3.0f);
  EXPECT_EQ(convert_one(DType::kI64, std::int64_t{-7}), -7.0f);
  EXPECT_EQ(convert_one(DType::kI32, std::int32_t{-7}), -7.0f);
  EXPECT_EQ(convert_one(DType::kI16, std::int16_t{-7}), -7.0f);
  EXPECT_EQ(convert_one(DType::kI8, std::int8_t{-7}), -7.0f);
  EXPECT_EQ(convert_one(DType::kU64, std::uint64_t{1} << 40), 0x1p40f);
  EXPECT_EQ(convert_one(DType::kU32, 4000000000u), 4000000000.0f);
  EXPECT_EQ(convert_one(DType::kU16, std::uint16_t{65535}), 65535.0f);
  EXPECT_EQ(convert_one(DType::kU8, std::uint8_t{200}), 200.0f);
  EXPECT_EQ(convert_one(DType::kBool, std::uint8_t{2}), 1.0f);
}

}  // namespace
}  // namespace rl
