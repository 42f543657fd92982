// A decoder and malformed bytes. That values come back: codec_test.cpp.
#include "runtime/codec/decoder.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

Decoder decoder_of(std::string bytes) { return Decoder(Buffer::adopt(std::move(bytes))); }

TEST(Decoder, TheFirstFaultCountsAndSaysWhere) {
  Decoder decoder = decoder_of("\1\2\3\4");
  EXPECT_EQ(decoder.read<std::uint8_t>(), 1);
  EXPECT_FALSE(decoder.read_bool());
  decoder.fail("a second fault");
  expect_failure(decoder.finish(), ErrorCode::kInvalidArgument, {"neither 0 nor 1 at byte 2 of 4"});
}

TEST(Decoder, AfterAFaultNothingIsRead) {
  Decoder decoder = decoder_of(std::string(100, '\1'));
  decoder.fail("a fault");
  EXPECT_FALSE(decoder.ok());
  EXPECT_EQ(decoder.read<std::uint32_t>(), 0u);
  EXPECT_EQ(decoder.read_length(), 0u);
  EXPECT_EQ(decoder.read_text(), "");
  EXPECT_TRUE(decoder.read_array(4).empty());
  EXPECT_EQ(decoder.read_ref(), nullptr);
  EXPECT_FALSE(decoder.enter());
  EXPECT_EQ(decoder.remaining(), 0u);
}

TEST(Decoder, ACountHas64Bits) {
  Decoder most = decoder_of(std::string(9, '\xff') + '\1');
  EXPECT_EQ(most.read_length(), 0u);
  expect_failure(most.finish(), ErrorCode::kInvalidArgument,
                 {"a count of 18446744073709551615 with 0 bytes left"});
  Decoder more = decoder_of(std::string(9, '\xff') + '\2');
  EXPECT_EQ(more.read_length(), 0u);
  expect_failure(more.finish(), ErrorCode::kInvalidArgument, {"does not fit 64 bits"});
}

TEST(Decoder, AnArrayOfWhichTheBytesWouldOverflowIsRefused) {
  // 2^61 elements of 8 bytes, which are 0 bytes modulo 2^64.
  Decoder decoder = decoder_of(std::string(7, '\0') + '\x20');
  EXPECT_TRUE(decoder.read_array(8).empty());
  expect_failure(decoder.finish(), ErrorCode::kInvalidArgument,
                 {"an array of 2305843009213693952"});
}

TEST(Decoder, WhatIsLeftOverIsAFault) {
  Decoder decoder = decoder_of("\1\2\3");
  (void)decoder.read<std::uint8_t>();
  expect_failure(decoder.finish(), ErrorCode::kInvalidArgument, {"2 bytes too many"});
}

}  // namespace
}  // namespace runtime
