// The bytes that an encoder makes. That values come back: codec_test.cpp.
#include "runtime/codec/encoder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/codec/decoder.h"

namespace runtime {
namespace {

TEST(Encoder, ACountTakesAByteForEachSevenBits) {
  for (const auto& [count, bytes] : std::vector<std::pair<std::uint64_t, std::string>>{
           {0, std::string(1, '\0')},
           {127, "\x7f"},
           {128, "\x80\x01"},
           {16384, "\x80\x80\x01"},
           {UINT64_MAX, std::string(9, '\xff') + '\x01'}}) {
    Encoder encoder;
    encoder.write_length(count);
    EXPECT_EQ(encoder.to_buffer().text(), bytes) << count;
  }
}

TEST(Encoder, WhatOutgrowsItsFirstPlaceIsWhole) {
  std::vector<std::uint16_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
  Encoder encoder;
  for (std::uint16_t number : numbers) encoder.write(number);
  EXPECT_EQ(encoder.size(), 2 * numbers.size());
  const Buffer bytes = encoder.to_buffer();
  ASSERT_EQ(bytes.size(), 2 * numbers.size());
  EXPECT_EQ(std::memcmp(bytes.data(), numbers.data(), bytes.size()), 0);
}

TEST(Encoder, LargeArraysLieBetweenWhatWasWrittenAroundThem) {
  const std::vector<std::uint64_t> first(kLargeArrayBytes / 8, 1), second(kLargeArrayBytes / 8, 2);
  Encoder encoder;
  encoder.write(std::uint8_t{7});
  encoder.write_array(first.data(), first.size(), 8);
  encoder.write_text("between");
  encoder.write_array(second.data(), second.size(), 8);
  encoder.write(std::uint8_t{8});
  const Buffer bytes = encoder.to_buffer();
  ASSERT_EQ(bytes.size(), encoder.size());
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.read<std::uint8_t>(), 7);
  auto array = decoder.read_array(8);
  EXPECT_EQ((array.data() - bytes.data()) % 64, 0);
  EXPECT_EQ(std::memcmp(array.data(), first.data(), kLargeArrayBytes), 0);
  EXPECT_EQ(decoder.read_text(), "between");
  array = decoder.read_array(8);
  EXPECT_EQ(std::memcmp(array.data(), second.data(), kLargeArrayBytes), 0);
  EXPECT_EQ(decoder.read<std::uint8_t>(), 8);
  EXPECT_TRUE(decoder.finish().ok());
}

TEST(Encoder, PaddingIsZerosSoThatEqualValuesHaveEqualBytes) {
  const std::uint32_t number = 5;
  Encoder encoder;
  for (int i = 0; i < 250; ++i) encoder.write(std::uint8_t{0xff});
  encoder.write_array(&number, 1, 4);
  const Buffer bytes = encoder.to_buffer();
  ASSERT_EQ(bytes.size(), 268u);
  EXPECT_EQ(bytes.text().substr(250, 6), std::string(6, '\0'));
}

}  // namespace
}  // namespace runtime
