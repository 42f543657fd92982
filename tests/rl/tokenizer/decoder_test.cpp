#include "rl/tokenizer/decoder.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using Json = nlohmann::json;
using runtime::ErrorCode;
using support::expect_failure;
using Tokens = std::vector<std::string>;

std::unique_ptr<TokenDecoder> decoder_of(const Json& component) {
  auto decoder = decoder_from_json(component);
  EXPECT_TRUE(decoder.ok()) << component << ": " << decoder.status().to_string();
  return std::move(*decoder);
}

Tokens decoded(const TokenDecoder& decoder, Tokens tokens) {
  decoder.decode(tokens);
  return tokens;
}

std::string joined(const TokenDecoder& decoder, const Tokens& tokens) {
  std::string text;
  for (const std::string& token : decoded(decoder, tokens)) text += token;
  return text;
}

TEST(TokenDecoder, BytesOfSeveralTokensAreOneCharacter) {
  const auto bytes = make_byte_level_decoder();
  EXPECT_EQ(joined(*bytes, {"\u0120\u00c3", "\u00a9"}), " \u00e9");
  EXPECT_EQ(joined(*bytes, {"\u00c3", "a"}), "\ufffda");
  EXPECT_TRUE(bytes->is_byte_level());
}

TEST(TokenDecoder, OnlyASequenceOfByteLevelAloneIsByteLevel) {
  const Json bytes = {{"type", "ByteLevel"}};
  const Json fuse = {{"type", "Fuse"}};
  const auto of = [](const Json& parts) {
    return decoder_of({{"type", "Sequence"}, {"decoders", parts}})->is_byte_level();
  };
  EXPECT_TRUE(of(Json::array({bytes})));
  EXPECT_FALSE(of(Json::array({bytes, fuse})));
  EXPECT_FALSE(of(Json::array({fuse})));
  EXPECT_FALSE(of(Json::array()));
}

TEST(TokenDecoder, ARunOfByteTokensIsTextOrSoManyReplacements) {
  const auto fallback = decoder_of({{"type", "ByteFallback"}});
  EXPECT_EQ(decoded(*fallback, {"a", "<0xC3>", "<0xA9>", "b"}), (Tokens{"a", "\u00e9", "b"}));
  EXPECT_EQ(decoded(*fallback, {"<0xC3>", "b", "<0xA9>"}), (Tokens{"\ufffd", "b", "\ufffd"}));
  EXPECT_EQ(decoded(*fallback, {"<0x61>", "<0xC3>"}), (Tokens{"\ufffd", "\ufffd"}))
      << "one that is no text is none in part";
}

TEST(TokenDecoder, StripTakesSoManyOfEachToken) {
  const auto strip = decoder_of({{"type", "Strip"}, {"content", "_"}, {"start", 1}, {"stop", 2}});
  EXPECT_EQ(decoded(*strip, {"__a___", "_", "b"}), (Tokens{"_a_", "", "b"}));
}

TEST(TokenDecoder, TheFirstWordHasNoSpaceInFront) {
  const Json mark = {{"type", "Metaspace"}};
  EXPECT_EQ(joined(*decoder_of(mark), {"\u2581a", "\u2581b"}), "a b");
  Json never = mark;
  never["prepend_scheme"] = "never";
  EXPECT_EQ(joined(*decoder_of(never), {"\u2581a", "\u2581b"}), " a b");
  Json older = mark;
  older["add_prefix_space"] = false;
  EXPECT_EQ(joined(*decoder_of(older), {"\u2581a"}), " a");
}

TEST(TokenDecoder, EndsOfWordsAreSpacesButForTheLast) {
  EXPECT_EQ(joined(*decoder_of({{"type", "BPEDecoder"}}), {"a</w>", "b", "c</w>"}), "a bc");
  EXPECT_EQ(joined(*decoder_of({{"type", "BPEDecoder"}, {"suffix", "@"}}), {"a@", "b@"}), "a b");
}

TEST(TokenDecoder, PartsOfWordsAreJoinedAndPunctuationMovedUp) {
  const auto tidy = decoder_of({{"type", "WordPiece"}});
  EXPECT_EQ(joined(*tidy, {"un", "##able", ",", "I", "'m", "done", "."}), "unable, I'm done.");
  const auto plain = decoder_of({{"type", "WordPiece"}, {"cleanup", false}});
  EXPECT_EQ(joined(*plain, {"un", "##able", ","}), "unable ,");
  EXPECT_EQ(joined(*plain, {"##able"}), "##able") << "the first token begins a word";
}

TEST(TokenDecoder, ReplaceIsByTextOrPattern) {
  const auto text =
      decoder_of({{"type", "Replace"}, {"pattern", {{"String", "."}}}, {"content", "!"}});
  EXPECT_EQ(decoded(*text, {"a.", ".."}), (Tokens{"a!", "!!"}));
  const auto pattern =
      decoder_of({{"type", "Replace"}, {"pattern", {{"Regex", "[0-9]+"}}}, {"content", "#"}});
  EXPECT_EQ(decoded(*pattern, {"a12b3"}), (Tokens{"a#b#"}));
}

TEST(TokenDecoder, SentencePieceTextsLoseTheSpacesThatEncodingPutThere) {
  const Tokens tokens = {"\u2581", "\u2581a", "<0xC3>", "<0xA9>", "\u2581b"};
  EXPECT_EQ(joined(*make_sentencepiece_decoder(0), tokens), "  a\u00e9 b");
  EXPECT_EQ(joined(*make_sentencepiece_decoder(1), tokens), " a\u00e9 b");
  EXPECT_EQ(joined(*make_sentencepiece_decoder(100), tokens), "a\u00e9 b");
}

TEST(TokenDecoder, NoTokensAreNoText) {
  for (const char* type :
       {"ByteLevel", "Metaspace", "ByteFallback", "Fuse", "WordPiece", "BPEDecoder"})
    EXPECT_EQ(joined(*decoder_of({{"type", type}}), {}), "") << type;
}

TEST(TokenDecoder, WhatItCannotDoIsRefused) {
  expect_failure(decoder_from_json({{"type", "Unheard"}}).status(), ErrorCode::kUnimplemented,
                 {"Unheard"});
  expect_failure(
      decoder_from_json({{"type", "Strip"}, {"content", ""}, {"start", 1}, {"stop", 1}}).status(),
      ErrorCode::kInvalidArgument, {"content of Strip is empty"});
  Json nested = {{"type", "Fuse"}};
  for (int depth = 0; depth < 1'000; ++depth)
    nested = Json{{"type", "Sequence"}, {"decoders", Json::array({std::move(nested)})}};
  expect_failure(decoder_from_json(nested).status(), ErrorCode::kInvalidArgument,
                 {"nested too deeply"});
}

}  // namespace
}  // namespace rl
