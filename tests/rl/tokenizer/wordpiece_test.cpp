#include "rl/tokenizer/wordpiece.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/tokenizer/encoded_piece.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using Json = nlohmann::json;
using runtime::ErrorCode;
using support::expect_failure;
using testing::encoded_piece;
using Ids = std::vector<std::int32_t>;
using Ranges = std::vector<Piece>;

Json wordpiece_json(const Json& options = Json::object()) {
  Json model = {{"vocab",
                 {{"[UNK]", 0u},
                  {"un", 1u},
                  {"una", 2u},
                  {"##aff", 3u},
                  {"##able", 4u},
                  {"##ff", 5u},
                  {"##\u00e9", 6u},
                  {"e", 7u}}},
                {"unk_token", "[UNK]"}};
  model.update(options);
  return model;
}

std::unique_ptr<TokenModel> wordpiece_of(const Json& model) {
  auto made = wordpiece_from_json(model);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

TEST(WordPiece, TakesTheLongestTokenFromTheLeft) {
  const auto model = wordpiece_of(wordpiece_json());
  EXPECT_EQ(encoded_piece(*model, "un").ids, (Ids{1}));
  const auto word = encoded_piece(*model, "unaffable");
  EXPECT_EQ(word.ids, (Ids{2, 5, 4})) << "not un ##aff ##able, which is shorter at first";
  EXPECT_EQ(word.ranges, (Ranges{{0, 3}, {3, 5}, {5, 9}}));
}

TEST(WordPiece, AWordThatCannotBeSpelledToItsEndIsUnknownAsAWhole) {
  const auto model = wordpiece_of(wordpiece_json());
  for (const char* word : {"x", "unx", "unaffx", "able"}) {
    const auto encoded = encoded_piece(*model, word);
    EXPECT_EQ(encoded.ids, (Ids{0})) << word;
    EXPECT_EQ(encoded.ranges, (Ranges{{0, static_cast<std::uint32_t>(std::string(word).size())}}));
  }
}

TEST(WordPiece, WordsHaveSoManyCharactersNotBytes) {
  const Json three = {{"max_input_chars_per_word", 3u}};
  const auto model = wordpiece_of(wordpiece_json(three));
  const auto accents = encoded_piece(*model, "e\u00e9\u00e9");
  EXPECT_EQ(accents.ids, (Ids{7, 6, 6}));
  EXPECT_EQ(accents.ranges, (Ranges{{0, 1}, {1, 3}, {3, 5}}));
  EXPECT_EQ(encoded_piece(*model, "e\u00e9\u00e9\u00e9").ids, (Ids{0}));
  const auto usual = wordpiece_of(wordpiece_json());
  std::string hundred = "e";
  for (int i = 1; i < 100; ++i) hundred += "\u00e9";
  EXPECT_EQ(encoded_piece(*usual, hundred).ids.size(), 100u);
  EXPECT_EQ(encoded_piece(*usual, hundred + "\u00e9").ids, (Ids{0}));
}

TEST(WordPiece, ThePrefixIsTheFilesOwn) {
  const auto model = wordpiece_of({{"vocab", {{"?", 0u}, {"a", 1u}, {"@b", 2u}}},
                                   {"unk_token", "?"},
                                   {"continuing_subword_prefix", "@"}});
  EXPECT_EQ(encoded_piece(*model, "ab").ids, (Ids{1, 2}));
}

TEST(WordPiece, NeedsItsUnknownToken) {
  for (const char* missing : {"[UNKNOWN]", ""})
    expect_failure(wordpiece_from_json(wordpiece_json({{"unk_token", missing}})).status(),
                   ErrorCode::kInvalidArgument, {"is not in the vocabulary"});
  Json without = wordpiece_json();
  without.erase("unk_token");
  EXPECT_EQ(wordpiece_from_json(without).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(wordlevel_from_json(without).status().code(), ErrorCode::kInvalidArgument);
}

TEST(WordLevel, KnowsWholeWordsOnly) {
  auto model = wordlevel_from_json(wordpiece_json());
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(encoded_piece(**model, "una").ids, (Ids{2}));
  EXPECT_EQ(encoded_piece(**model, "una").ranges, (Ranges{{0, 3}}));
  EXPECT_EQ(encoded_piece(**model, "unaff").ids, (Ids{0}));
  EXPECT_EQ(encoded_piece(**model, "unaff").ranges, (Ranges{{0, 5}}));
}

}  // namespace
}  // namespace rl
