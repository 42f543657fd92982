#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "rl/weights/gguf.h"

namespace rl {
namespace {

template <class T>
std::vector<std::byte> bytes_of_values(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(GgufValue, IntegersFitOrAreNone) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(GgufValue(GgufType::kU64, kMax).as_integer(), std::int64_t{kMax});
  EXPECT_EQ(GgufValue(GgufType::kU64, kMax + 1).as_integer(), std::nullopt);
  EXPECT_EQ(GgufValue(GgufType::kU64, kMax + 1).as_number(), 9223372036854775808.0);
  EXPECT_EQ(GgufValue(GgufType::kI8, std::int64_t{-3}).as_integer(), -3);
  EXPECT_EQ(GgufValue(GgufType::kF32, 2.0).as_integer(), std::nullopt) << "a float is none";
  EXPECT_EQ(GgufValue(GgufType::kF32, 2.5).as_number(), 2.5);
}

TEST(GgufValue, ABoolIsNoNumberAndNumbersAreNoBools) {
  const GgufValue yes(GgufType::kBool, true);
  EXPECT_EQ(yes.as_bool(), true);
  EXPECT_EQ(yes.as_integer(), std::nullopt);
  EXPECT_EQ(yes.as_number(), std::nullopt);
  EXPECT_EQ(GgufValue(GgufType::kU8, std::uint64_t{1}).as_bool(), std::nullopt);
}

TEST(GgufValue, TextsAndArraysAreAskedForAsSuch) {
  const GgufValue text(GgufType::kString, std::string_view("llama"));
  EXPECT_EQ(text.as_string(), "llama");
  EXPECT_EQ(text.as_integer(), std::nullopt);
  EXPECT_EQ(text.as_array(), nullptr);
  const GgufValue array(GgufType::kArray, GgufArray(GgufType::kU8, 0, {}));
  ASSERT_NE(array.as_array(), nullptr);
  EXPECT_EQ(array.as_array()->size(), 0u);
  EXPECT_EQ(array.as_string(), std::nullopt);
}

TEST(GgufArray, ElementsKeepTheirSigns) {
  const auto small = bytes_of_values<std::int8_t>({-1, 2, -128});
  EXPECT_EQ(GgufArray(GgufType::kI8, 3, small).integers(),
            (std::vector<std::int64_t>{-1, 2, -128}));
  EXPECT_EQ(GgufArray(GgufType::kU8, 3, small).integers(),
            (std::vector<std::int64_t>{255, 2, 128}));
  const auto wide = bytes_of_values<std::int32_t>({-5, 7});
  EXPECT_EQ(GgufArray(GgufType::kI32, 2, wide).integers(), (std::vector<std::int64_t>{-5, 7}));
  EXPECT_EQ(GgufArray(GgufType::kI32, 2, wide).numbers(), (std::vector<double>{-5, 7}));
  const auto bools = bytes_of_values<std::uint8_t>({1, 0});
  EXPECT_EQ(GgufArray(GgufType::kBool, 2, bools).integers(), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(GgufArray(GgufType::kBool, 2, bools).numbers(), std::nullopt);
}

TEST(GgufArray, OneElementThatDoesNotFitIsNoneOfThem) {
  const auto large = bytes_of_values<std::uint64_t>({1, std::uint64_t{1} << 63});
  EXPECT_EQ(GgufArray(GgufType::kU64, 2, large).integers(), std::nullopt);
  EXPECT_EQ(GgufArray(GgufType::kU64, 1, large).integers(), std::vector<std::int64_t>{1});
  EXPECT_EQ(GgufArray(GgufType::kU64, 2, large).numbers(),
            (std::vector<double>{1, 9223372036854775808.0}));
  const auto floats = bytes_of_values<float>({0.5F});
  EXPECT_EQ(GgufArray(GgufType::kF32, 1, floats).integers(), std::nullopt);
  EXPECT_EQ(GgufArray(GgufType::kF32, 1, floats).numbers(), std::vector<double>{0.5});
}

TEST(GgufArray, TextsHaveTheirLengthsInFront) {
  std::vector<std::byte> bytes;
  for (const std::string& text : {std::string("ab"), std::string(), std::string("c\0d", 3)}) {
    const auto length = bytes_of_values<std::uint64_t>({text.size()});
    bytes.insert(bytes.end(), length.begin(), length.end());
    const auto letters = std::as_bytes(std::span(text));
    bytes.insert(bytes.end(), letters.begin(), letters.end());
  }
  const GgufArray texts(GgufType::kString, 3, bytes);
  EXPECT_EQ(texts.strings(),
            (std::vector<std::string_view>{"ab", "", std::string_view("c\0d", 3)}));
  EXPECT_EQ(texts.integers(), std::nullopt);
  EXPECT_EQ(texts.numbers(), std::nullopt);
  EXPECT_EQ(GgufArray(GgufType::kU8, 0, {}).strings(), std::nullopt);
}

}  // namespace
}  // namespace rl
