// The order of a tokenizer's parts, around a model that has one token a byte.
#include "rl/tokenizer/pipeline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/rl/tokenizer/fake_parts.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;
using testing::ByteModel;
using testing::SmallLetters;
using testing::vocabulary_of;
using Ids = std::vector<std::int32_t>;
using Mask = std::vector<std::uint8_t>;
using Offsets = std::vector<TokenOffsets>;

// Splits nothing, and notes each text, with a '^' where it is the beginning of the original.
class NotedTexts final : public PreTokenizer {
 public:
  explicit NotedTexts(std::vector<std::string>& texts) : texts_(texts) {}
  runtime::Status apply(PieceList& list, RegexScratch&) const override {
    texts_.push_back((list.at_start ? "^" : "") + std::string(list.text));
    return {};
  }

 private:
  std::vector<std::string>& texts_;
};

// Joins the tokens with a '+'.
class PlusDecoder final : public TokenDecoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, "+");
  }
};

// The added token <S> is looked for in the text, and <t> in the normalized text.
class TokenizerParts : public ::testing::Test {
 protected:
  TokenizerParts() {
    parts_.normalizer = std::make_unique<SmallLetters>();
    parts_.pre_tokenizer = std::make_unique<NotedTexts>(texts_);
    parts_.model = std::make_unique<ByteModel>(vocabulary_of({"hello", ",", "there", "<S>"}));
    auto added = AddedTokens::make({{.id = 500, .content = "<S>", .special = true},
                                    {.id = 501, .content = "<t>", .normalized = true}},
                                   parts_.normalizer.get());
    EXPECT_TRUE(added.ok()) << added.status().to_string();
    parts_.added_tokens = added.value_or({});
    parts_.post_processor.prefix = {7};
    parts_.post_processor.suffix = {8, 9};
  }

  Encoding encoded(std::string_view text, const EncodeOptions& options) {
    auto encoding = parts_.encode_with(text, options);
    EXPECT_TRUE(encoding.ok()) << encoding.status().to_string();
    return encoding.value_or({});
  }

  std::vector<std::string> texts_;  // that were to be split
  TokenizerPipeline parts_;
};

TEST_F(TokenizerParts, TokensOfTheOriginalTextAreFoundBeforeThoseOfTheNormalized) {
  const Ids plain = {'a', 500, 'b', 501, 'c', '<', 's', '>'};
  EXPECT_EQ(parts_.encode("A<S>B<T>c<s>", false).value_or({}), plain);
  EXPECT_EQ(encoded("A<S>B<T>c<s>", {.add_special_tokens = false}).ids, plain);
  EXPECT_EQ(
      encoded("A<S>B<T>c<s>", {.add_special_tokens = false, .offsets = OffsetUnit::kBytes}).ids,
      plain);
  EXPECT_EQ(parts_.encode("a", true).value_or({}), (Ids{7, 'a', 8, 9}));
}

TEST_F(TokenizerParts, OnlyTheFirstTextIsAtTheStart) {
  using Texts = std::vector<std::string>;
  for (const OffsetUnit unit : {OffsetUnit::kNone, OffsetUnit::kBytes}) {
    texts_.clear();
    encoded("A<T>b<S>c", {.offsets = unit});
    EXPECT_EQ(texts_, (Texts{"^a", "b", "c"}));
    texts_.clear();
    encoded("<S>b", {.offsets = unit});
    encoded("<t>b", {.offsets = unit});
    EXPECT_EQ(texts_, (Texts{"b", "b"}));
  }
}

TEST_F(TokenizerParts, TruncationLeavesTheSpecialTokens) {
  EncodeOptions options{.offsets = OffsetUnit::kBytes, .tokens_max = 5};
  const Encoding right = encoded("abcdef", options);
  EXPECT_EQ(right.ids, (Ids{7, 'a', 'b', 8, 9}));
  EXPECT_EQ(right.special_mask, (Mask{1, 0, 0, 1, 1}));
  EXPECT_EQ(right.attention_mask, (Mask{1, 1, 1, 1, 1}));
  EXPECT_EQ(right.offsets, (Offsets{{0, 0}, {0, 1}, {1, 2}, {0, 0}, {0, 0}}));
  options.truncation_side = Side::kLeft;
  const Encoding left = encoded("abcdef", options);
  EXPECT_EQ(left.ids, (Ids{7, 'e', 'f', 8, 9}));
  EXPECT_EQ(left.offsets, (Offsets{{0, 0}, {4, 5}, {5, 6}, {0, 0}, {0, 0}}));
  EXPECT_EQ(encoded("abcdef", {.tokens_max = 3}).ids, (Ids{7, 8, 9}));
  EXPECT_EQ(encoded("abcdef", {.add_special_tokens = false, .tokens_max = 2}).ids, (Ids{'a', 'b'}));
  expect_failure(parts_.encode_with("abcdef", {.tokens_max = 2}).status(),
                 ErrorCode::kInvalidArgument, {"at most 2 tokens", "the 3 special tokens"});
}

TEST_F(TokenizerParts, OffsetsCountBytesOrCharactersOfTheOriginal) {
  EncodeOptions options{.add_special_tokens = false, .offsets = OffsetUnit::kBytes};
  EXPECT_EQ(encoded("\u00e9<S>B", options).offsets, (Offsets{{0, 2}, {0, 2}, {2, 5}, {5, 6}}));
  options.offsets = OffsetUnit::kCharacters;
  EXPECT_EQ(encoded("\u00e9<S>B", options).offsets, (Offsets{{0, 1}, {0, 1}, {1, 4}, {4, 5}}));
  options.offsets = OffsetUnit::kNone;
  EXPECT_TRUE(encoded("\u00e9<S>B", options).offsets.empty());
}

TEST_F(TokenizerParts, ATextThatCannotBeEncodedIsAnErrorInEitherWay) {
  for (const OffsetUnit unit : {OffsetUnit::kNone, OffsetUnit::kBytes}) {
    expect_failure(parts_.encode_with("a\xff", {.offsets = unit}).status(),
                   ErrorCode::kInvalidArgument, {"not UTF-8 at byte 1"});
    expect_failure(parts_.encode_with("<S>no!", {.offsets = unit}).status(),
                   ErrorCode::kResourceExhausted, {"gave up on no!"});
  }
  expect_failure(parts_.encode("a\xff", true).status(), ErrorCode::kInvalidArgument, {"byte 1"});
  expect_failure(parts_.encode("<S>no!", true).status(), ErrorCode::kResourceExhausted, {"no!"});
}

TEST_F(TokenizerParts, DecodingLeavesOutWhatIsUnknownOrSpecial) {
  const Ids ids = {500, 0, 99, 1, 2, 501};
  EXPECT_EQ(parts_.decode(ids, false), "<S> hello , there <t>") << "without a decoder, with spaces";
  EXPECT_EQ(parts_.decode(ids, true), "hello , there <t>") << "an added token need not be special";
  parts_.cleans_up_spaces = true;
  EXPECT_EQ(parts_.decode(ids, true), "hello, there <t>");
  EXPECT_EQ(parts_.decode_as_is(ids, true), "hello , there <t>");
  parts_.decoder = std::make_unique<PlusDecoder>();
  EXPECT_EQ(parts_.decode(ids, true), "hello+,+there+<t>");
}

TEST_F(TokenizerParts, AnAddedTokenHidesTheVocabularysOfTheSameText) {
  EXPECT_EQ(parts_.find("<S>"), 500);
  EXPECT_EQ(parts_.find("there"), 2);
  EXPECT_EQ(parts_.find("<u>"), std::nullopt);
  EXPECT_EQ(parts_.size(), 502);
  EXPECT_FALSE(parts_.is_special(3)) << "the vocabulary's is a token like any other";
  EXPECT_FALSE(parts_.is_special(501));
  EXPECT_EQ(parts_.token(502), "");
}

}  // namespace
}  // namespace rl
