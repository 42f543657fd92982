#include "rl/optim/gradient_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace rl {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Encoded {
  std::vector<float> sent;
  std::vector<float> rest;
};

Encoded encode(const GradientCodec& codec, std::vector<float> values) {
  std::vector<std::byte> code(codec.bytes_of(values.size()));
  codec.encode(values, code);
  std::vector<float> sent(values.size(), 0.0F);
  codec.add(code, sent);
  return {std::move(sent), std::move(values)};
}

// Nothing is rounded where a value is a sum of what was sent and the rest.
void expect_split(const GradientCodec& codec, const std::vector<float>& values) {
  const Encoded split = encode(codec, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(double{split.sent[i]} + double{split.rest[i]}, double{values[i]}) << i;
    EXPECT_LE(std::abs(split.rest[i]), std::abs(values[i])) << i;
  }
}

std::vector<float> drawn(std::size_t count, float size) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random) * size;
  return values;
}

TEST(GradientCodec, WhatIsSentAndTheRestAreTheValuesExactly) {
  for (const float size : {1.0F, 1e-6F, 1e-30F, 1e-38F, 1e6F, 1e30F, 1e37F}) {
    SCOPED_TRACE(size);
    for (const std::size_t count : {1, 2, 3, 1023, 3000}) {
      expect_split(Fp16Codec(), drawn(count, size));
      expect_split(TopKCodec(0.1), drawn(count, size));
      expect_split(TopKCodec(1.0), drawn(count, size));
    }
  }
  // Ten orders of magnitude next to each other, the largest float and the smallest.
  std::vector<float> mixed{std::numeric_limits<float>::max(),        -1.0F, 65504.0F, 65505.0F,
                           std::numeric_limits<float>::denorm_min(), -0.0F, 0.0F};
  expect_split(Fp16Codec(), mixed);
  mixed[0] = 1e-5F;
  expect_split(Fp16Codec(), mixed);
  expect_split(Fp16Codec(), {std::numeric_limits<float>::denorm_min(), 1e-44F});
  expect_split(TopKCodec(0.5), mixed);
}

TEST(Fp16Codec, RoundsToElevenBitsWhateverTheSize) {
  for (const float size : {1e-30F, 1e-3F, 1.0F, 1e6F, 1e30F}) {
    const std::vector<float> values = drawn(1000, size);
    const Encoded split = encode(Fp16Codec(), values);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_LE(std::abs(split.rest[i]), std::abs(values[i]) * 0x1p-11F) << size << ", " << i;
  }
  EXPECT_EQ(encode(Fp16Codec(), {0.0F, 0.0F}).sent, std::vector<float>(2, 0.0F));
  EXPECT_EQ(Fp16Codec().bytes_of(0), 0U);
  EXPECT_EQ(Fp16Codec().bytes_of(100), 4U + 200U) << "a scale and halves";
}

TEST(Fp16Codec, WhatIsNotFiniteShowsAndLeavesNothing) {
  for (const float bad : {kNan, kInf, -kInf}) {
    const Encoded split = encode(Fp16Codec(), {1.0F, bad, 3.0F});
    EXPECT_FALSE(std::isfinite(split.sent[1]));
    EXPECT_EQ(split.rest, std::vector<float>(3, 0.0F));
  }
}

TEST(TopKCodec, SendsTheLargestAndOfEqualOnesTheFirst) {
  const Encoded split = encode(TopKCodec(0.5), {1.0F, -3.0F, 2.0F, 0.5F, -2.0F, 2.0F});
  EXPECT_EQ(split.sent, (std::vector<float>{0, -3.0F, 2.0F, 0, -2.0F, 0}));
  EXPECT_EQ(split.rest, (std::vector<float>{1.0F, 0, 0, 0.5F, 0, 2.0F}));
  // They differ in their last bits alone.
  const float close = std::nextafter(1.0F, 2.0F);
  EXPECT_EQ(encode(TopKCodec(0.25), {1.0F, 1.0F, close, 1.0F}).sent,
            (std::vector<float>{0, 0, close, 0}));
  EXPECT_EQ(encode(TopKCodec(0.5), std::vector<float>(4, 0.0F)).sent, std::vector<float>(4, 0.0F));
}

TEST(TopKCodec, SendsAShareAndOfFewValuesOne) {
  const TopKCodec codec(0.01);
  EXPECT_EQ(codec.kept_of(0), 0U);
  EXPECT_EQ(codec.kept_of(1), 1U);
  EXPECT_EQ(codec.kept_of(99), 1U);
  EXPECT_EQ(codec.kept_of(1000), 10U);
  EXPECT_EQ(codec.kept_of(1001), 11U);
  EXPECT_EQ(TopKCodec(1.0).kept_of(1001), 1001U);
  EXPECT_EQ(codec.bytes_of(1000), 80U) << "places and values";
  EXPECT_EQ(encode(codec, {0.5F}).sent, (std::vector<float>{0.5F}));
  EXPECT_TRUE(encode(codec, {}).sent.empty());
}

TEST(TopKCodec, WhatIsNotFiniteIsSentFirstAndLeavesNothing) {
  const Encoded split = encode(TopKCodec(0.25), {1e38F, kNan, -kInf, 1.0F});
  EXPECT_TRUE(std::isnan(split.sent[1]));
  EXPECT_EQ(split.rest, (std::vector<float>{1e38F, 0.0F, 0.0F, 1.0F}));
}

// Steps of random gradients: nothing is lost, and what is not sent stays bounded.
TEST(TopKCodec, OverManyStepsEverythingIsSent) {
  const TopKCodec codec(0.05);
  std::mt19937 random(3);
  std::uniform_int_distribution<int> integer(-8, 8);
  std::vector<float> rest(200, 0.0F), sent(200, 0.0F), all(200, 0.0F);
  std::vector<std::byte> code(codec.bytes_of(rest.size()));
  for (int step = 0; step < 100; ++step) {
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const auto gradient = static_cast<float>(integer(random));  // whose sums are exact
      rest[i] += gradient;
      all[i] += gradient;
    }
    codec.encode(rest, code);
    codec.add(code, sent);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(sent[i] + rest[i], all[i]) << i;
    EXPECT_LT(std::abs(rest[i]), 60.0F) << i;
  }
}

TEST(GradientCompression, HasThreeNames) {
  EXPECT_EQ(parse_gradient_compression("none").value(), GradientCompression::kNone);
  EXPECT_EQ(parse_gradient_compression("fp16").value(), GradientCompression::kFp16);
  EXPECT_EQ(parse_gradient_compression("topk").value(), GradientCompression::kTopK);
  EXPECT_EQ(parse_gradient_compression("powersgd").status().message(),
            "no compression of gradients 'powersgd': use none, fp16 or topk");
  EXPECT_EQ(make_gradient_codec({}), nullptr);
}

}  // namespace
}  // namespace rl
