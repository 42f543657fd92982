#include "rl/tokenizer/encoding.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rl {
namespace {

using Ids = std::vector<std::int32_t>;
using Mask = std::vector<std::uint8_t>;
using Offsets = std::vector<TokenOffsets>;

// Of the tokens 1, 2, ..., each of which stands for one byte.
Encoding encoding_of(std::int32_t tokens) {
  Encoding encoding;
  for (std::int32_t id = 1; id <= tokens; ++id) {
    encoding.ids.push_back(id);
    encoding.attention_mask.push_back(1);
    encoding.special_mask.push_back(0);
    encoding.offsets.push_back(
        {static_cast<std::uint32_t>(id - 1), static_cast<std::uint32_t>(id)});
  }
  return encoding;
}

std::vector<std::size_t> padded_lengths(const Padding& padding) {
  std::vector<Encoding> encodings = {encoding_of(3), encoding_of(1)};
  pad_encodings(encodings, padding, 9, true);
  return {encodings[0].ids.size(), encodings[1].ids.size()};
}

using Lengths = std::vector<std::size_t>;

TEST(PadEncodings, TheTargetIsRoundedUp) {
  EXPECT_EQ(padded_lengths({.target = Padding::Target::kLongest}), (Lengths{3, 3}));
  EXPECT_EQ(padded_lengths({.target = Padding::Target::kLongest, .length = 8, .multiple_of = 2}),
            (Lengths{4, 4}));
  EXPECT_EQ(padded_lengths({.target = Padding::Target::kFixed, .length = 5, .multiple_of = 4}),
            (Lengths{8, 8}));
  EXPECT_EQ(padded_lengths({.length = 5, .multiple_of = 4}), (Lengths{3, 1})) << "not asked for";
}

TEST(PadEncodings, LongerTextsStayAsTheyAre) {
  EXPECT_EQ(padded_lengths({.target = Padding::Target::kFixed, .length = 2}), (Lengths{3, 2}));
}

TEST(PadEncodings, EachMemberSaysThatItIsPadding) {
  std::vector<Encoding> one = {encoding_of(1)};
  Padding padding{.target = Padding::Target::kFixed, .length = 3};
  pad_encodings(one, padding, 9, true);
  EXPECT_EQ(one[0].ids, (Ids{1, 9, 9}));
  EXPECT_EQ(one[0].attention_mask, (Mask{1, 0, 0}));
  EXPECT_EQ(one[0].special_mask, (Mask{0, 1, 1}));
  EXPECT_EQ(one[0].offsets, (Offsets{{0, 1}, {0, 0}, {0, 0}}));
  one = {encoding_of(1)};
  padding.side = Side::kLeft;
  pad_encodings(one, padding, 9, true);
  EXPECT_EQ(one[0].ids, (Ids{9, 9, 1}));
  EXPECT_EQ(one[0].attention_mask, (Mask{0, 0, 1}));
  EXPECT_EQ(one[0].special_mask, (Mask{1, 1, 0}));
  EXPECT_EQ(one[0].offsets, (Offsets{{0, 0}, {0, 0}, {0, 1}}));
}

TEST(PadEncodings, OffsetsStayNoneUnlessAskedFor) {
  std::vector<Encoding> one = {encoding_of(1)};
  one[0].offsets.clear();
  pad_encodings(one, {.target = Padding::Target::kFixed, .length = 3}, 9, false);
  EXPECT_EQ(one[0].ids.size(), 3u);
  EXPECT_TRUE(one[0].offsets.empty());
}

TEST(TokenOffsets, CountCharactersOfAnyLengthAndBytesAgain) {
  const std::string_view text = "a\u00e9\u4f60\U0001f600b";  // of 1, 2, 3, 4 and 1 bytes
  const Offsets in_bytes = {{0, 1}, {1, 3}, {3, 10}, {6, 10}, {10, 11}, {11, 11}};
  Offsets offsets = in_bytes;
  offsets_to_characters(text, offsets);
  EXPECT_EQ(offsets, (Offsets{{0, 1}, {1, 2}, {2, 4}, {3, 4}, {4, 5}, {5, 5}}));
  offsets_to_bytes(text, offsets);
  EXPECT_EQ(offsets, in_bytes);
}

}  // namespace
}  // namespace rl
