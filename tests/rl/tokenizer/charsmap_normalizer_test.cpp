#include "rl/tokenizer/charsmap_normalizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;
using TextOrigins = std::vector<Piece>;

// As SentencePiece writes a table: the units of a Darts trie, then the replacements. Each prefix of
// a key has 256 units to itself, one for each byte that may follow.
std::string charsmap_of(const std::map<std::string, std::string>& replacements) {
  std::map<std::string, std::uint32_t> blocks = {{"", 256}};
  for (const auto& [key, text] : replacements) {
    for (std::size_t length = 1; length <= key.size(); ++length) {
      const auto next = static_cast<std::uint32_t>(256 * (blocks.size() + 1));
      blocks.try_emplace(key.substr(0, length), next);
    }
  }
  std::vector<std::uint32_t> units(256 * (blocks.size() + 1));
  units[0] = blocks[""] << 10;
  std::string texts;
  for (const auto& [prefix, block] : blocks) {
    const auto found = replacements.find(prefix);
    const bool is_key = found != replacements.end();
    if (!prefix.empty()) {
      const auto label = static_cast<unsigned char>(prefix.back());
      const std::uint32_t at = blocks[prefix.substr(0, prefix.size() - 1)] + label;
      units[at] = (at ^ block) << 10 | (is_key ? 1u << 8 : 0u) | label;
    }
    if (!is_key) continue;
    units[block] = 1u << 31 | static_cast<std::uint32_t>(texts.size());
    texts += found->second + '\0';
  }
  const auto size = static_cast<std::uint32_t>(units.size() * sizeof(units[0]));
  std::string blob(sizeof(size) + size, '\0');
  std::memcpy(blob.data(), &size, sizeof(size));
  std::memcpy(blob.data() + sizeof(size), units.data(), size);
  return blob + texts;
}

std::string small_charsmap() {
  return charsmap_of({{"ab", "X"},
                      {"abc", "Y"},
                      {"\ufb01", "fi"},
                      {"\u200b", ""},
                      {"\t", " "},
                      {"\u3000", "  "},
                      {"e\u0301", "\u00e9"},
                      {"\u0301", "'"}});
}

std::string base64_of(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 3; ++i)
      bits = bits << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += at + i > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * i) & 63];
  }
  return text;
}

AlignedText aligned_by(const Normalizer& normalizer, std::string_view text,
                       std::uint32_t begin = 0) {
  AlignedText aligned = align(text, begin);
  RegexScratch scratch;
  EXPECT_TRUE(normalizer.apply_aligned(aligned, scratch).ok()) << text;
  return aligned;
}

// In both ways, which give the same.
std::string normalized_by(const Normalizer& normalizer, std::string_view text) {
  std::string made(text);
  RegexScratch scratch;
  EXPECT_TRUE(normalizer.apply(made, scratch).ok()) << text;
  const AlignedText aligned = aligned_by(normalizer, text);
  EXPECT_EQ(aligned.text, made) << text;
  EXPECT_EQ(aligned.origins.size(), aligned.text.size()) << text;
  return made;
}

// With "abd" and two tabs as user-defined symbols. The texts to expect are those of the
// sentencepiece wheel 0.2.3, with a model of these rules, symbols and options.
std::unique_ptr<Normalizer> sentencepiece_with(SentencePieceNormalizerOptions options) {
  auto charsmap = CharsMap::parse(small_charsmap());
  EXPECT_TRUE(charsmap.ok()) << charsmap.status().to_string();
  options.charsmap = charsmap.value_or({});
  options.kept = {"abd", "\t\t"};
  return make_sentencepiece_normalizer(std::move(options));
}

TEST(SentencePieceNormalizer, TheLongestStringIsReplacedButForKeptSymbols) {
  const auto normalizer = sentencepiece_with({});
  EXPECT_EQ(normalized_by(*normalizer, "abc"), "\u2581Y");
  EXPECT_EQ(normalized_by(*normalizer, "ab abd"), "\u2581X\u2581abd");
  EXPECT_EQ(normalized_by(*normalizer, "a\t\tb"), "\u2581a\t\tb");
  EXPECT_EQ(normalized_by(*normalizer, "e\u0301b"), "\u2581\u00e9b");
}

TEST(SentencePieceNormalizer, SpacesThatReplacementsMakeAreExtraTooWhenTheyEndAPiece) {
  const auto normalizer = sentencepiece_with({});
  EXPECT_EQ(normalized_by(*normalizer, " a  b "), "\u2581a\u2581b");
  EXPECT_EQ(normalized_by(*normalizer, "\ta\t"), "\u2581a");
  EXPECT_EQ(normalized_by(*normalizer, "a \u200b b"), "\u2581a\u2581b");
  EXPECT_EQ(normalized_by(*normalizer, "a\u3000b"), "\u2581a\u2581\u2581b");
  for (const char* blank : {"", "  ", "\u3000"})
    EXPECT_EQ(normalized_by(*normalizer, blank), "") << blank;
}

TEST(SentencePieceNormalizer, SpacesAreAsTheOptionsSay) {
  const auto all = sentencepiece_with({.remove_extra_whitespaces = false});
  EXPECT_EQ(normalized_by(*all, " a  b "), "\u2581\u2581a\u2581\u2581b\u2581");
  EXPECT_EQ(normalized_by(*all, "\u3000"), "\u2581\u2581\u2581");
  EXPECT_EQ(normalized_by(*all, ""), "");
  const auto none_added =
      sentencepiece_with({.add_dummy_prefix = false, .remove_extra_whitespaces = false});
  EXPECT_EQ(normalized_by(*none_added, "\ta\t"), "\u2581a\u2581");
  const auto behind = sentencepiece_with({.whitespace_as_suffix = true});
  EXPECT_EQ(normalized_by(*behind, " a  b "), "a\u2581b\u2581");
  EXPECT_EQ(normalized_by(*behind, "\u3000"), "\u2581");
  EXPECT_EQ(normalized_by(*behind, "  "), "");
  const auto plain = sentencepiece_with({.escape_whitespaces = false});
  EXPECT_EQ(normalized_by(*plain, "a  b"), " a b");
}

TEST(SentencePieceNormalizer, NewTextComesFromWhatItReplaces) {
  const AlignedText aligned = aligned_by(*sentencepiece_with({}), "a\ufb01 b ", 10);
  EXPECT_EQ(aligned.text, "\u2581afi\u2581b");
  EXPECT_EQ(aligned.origins, (TextOrigins{{10, 11},
                                          {10, 11},
                                          {10, 11},
                                          {10, 11},
                                          {11, 14},
                                          {11, 14},
                                          {14, 15},
                                          {14, 15},
                                          {14, 15},
                                          {15, 16}}));
  EXPECT_EQ(aligned.begin, 10u);
}

std::unique_ptr<Normalizer> small_precompiled() {
  auto made = precompiled_from_json(
      {{"type", "Precompiled"}, {"precompiled_charsmap", base64_of(small_charsmap())}});
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

// As Precompiled of the tokenizers wheel 0.23.3 does with this table.
TEST(Precompiled, ReplacesWholeGraphemesByWhatTheirShortestBeginningBecomes) {
  const auto normalizer = small_precompiled();
  EXPECT_EQ(normalized_by(*normalizer, "abc"), "abc") << "three graphemes, of which none is a key";
  EXPECT_EQ(normalized_by(*normalizer, "a\ufb01b"), "afib");
  EXPECT_EQ(normalized_by(*normalizer, "ae\u0301\u0301b"), "a\u00e9b") << "a mark is lost";
  EXPECT_EQ(normalized_by(*normalizer, "\ufb01\u0301"), "fi");
  EXPECT_EQ(normalized_by(*normalizer, "a\t\u3000"), "a   ");
}

TEST(Precompiled, LongGraphemesAreReplacedCharacterByCharacter) {
  const auto normalizer = small_precompiled();
  EXPECT_EQ(normalized_by(*normalizer, "\ufb01\u0301\u0301"), "fi''");
  EXPECT_EQ(normalized_by(*normalizer, "e\u0301\u0301\u0301b"), "e'''b");
  EXPECT_EQ(normalized_by(*normalizer, "a\u0301b"), "a'b")
      << "and so is a short one that begins with no key";
}

TEST(Precompiled, CharactersThatGoCountWithTheOneBefore) {
  const auto normalizer = small_precompiled();
  EXPECT_EQ(aligned_by(*normalizer, "a\u200bb").origins, (TextOrigins{{0, 1}, {4, 5}}));
  EXPECT_EQ(aligned_by(*normalizer, "\u200ba").origins, (TextOrigins{{0, 3}}))
      << "before the first there is none";
  EXPECT_EQ(aligned_by(*normalizer, "a\ufb01b").origins,
            (TextOrigins{{0, 1}, {1, 4}, {1, 4}, {4, 5}}));
  EXPECT_EQ(aligned_by(*normalizer, "e\u0301\u0301b").origins,
            (TextOrigins{{0, 1}, {0, 1}, {5, 6}}));
}

TEST(Precompiled, DamagedTablesAreRefused) {
  const auto expect = [](const nlohmann::json& component, const std::string& mentions) {
    expect_failure(precompiled_from_json(component).status(), ErrorCode::kInvalidArgument,
                   {"precompiled_charsmap", mentions});
  };
  expect(nlohmann::json::object(), "is missing");
  expect({{"precompiled_charsmap", "AA*A"}}, "is not base64");
  expect({{"precompiled_charsmap", "AA=A"}}, "is not base64");
  expect({{"precompiled_charsmap", base64_of(small_charsmap().substr(0, 100))}}, "claims a trie");
}

}  // namespace
}  // namespace rl
