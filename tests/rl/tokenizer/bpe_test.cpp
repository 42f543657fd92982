#include "rl/tokenizer/bpe.h"

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

// Tokens have the ids of their places.
Json bpe_json(const std::vector<std::string>& tokens, const Json& merges, const Json& options) {
  Json model = {{"vocab", Json::object()}, {"merges", merges}};
  for (std::size_t id = 0; id < tokens.size(); ++id) model["vocab"][tokens[id]] = id;
  model.update(options);
  return model;
}

std::unique_ptr<TokenModel> bpe_of(const std::vector<std::string>& tokens, const Json& merges,
                                   const Json& options = Json::object(),
                                   bool pieces_are_bytes = false) {
  auto model = bpe_from_json(bpe_json(tokens, merges, options), pieces_are_bytes);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

TEST(Bpe, ThePairThatWasLearnedEarliestMergesFirst) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "bc", "abc"};
  const auto left = bpe_of(tokens, Json::array({"a b", "b c"}));
  EXPECT_EQ(encoded_piece(*left, "abc").ids, (Ids{3, 2}));
  const auto right = bpe_of(tokens, Json::array({"b c", "a b"}));
  EXPECT_EQ(encoded_piece(*right, "abc").ids, (Ids{0, 4}));
  const auto all = bpe_of(tokens, Json::array({Json{"b", "c"}, Json{"a", "bc"}}));
  EXPECT_EQ(encoded_piece(*all, "abcabc").ids, (Ids{5, 5}));
  EXPECT_EQ(encoded_piece(*all, "abcabc").ranges, (Ranges{{0, 3}, {3, 6}}));
}

TEST(Bpe, UnknownCharactersAreDroppedUnlessThereIsATokenForThem) {
  const std::vector<std::string> tokens = {"a", "?"};
  EXPECT_EQ(encoded_piece(*bpe_of(tokens, Json::array()), "axxa").ids, (Ids{0, 0}));
  const auto each = bpe_of(tokens, Json::array(), {{"unk_token", "?"}});
  EXPECT_EQ(encoded_piece(*each, "ax\u00e9a").ids, (Ids{0, 1, 1, 0}));
  EXPECT_EQ(encoded_piece(*each, "ax\u00e9a").ranges, (Ranges{{0, 1}, {1, 2}, {2, 4}, {4, 5}}));
  const auto fused = bpe_of(tokens, Json::array(), {{"unk_token", "?"}, {"fuse_unk", true}});
  EXPECT_EQ(encoded_piece(*fused, "ax\u00e9ax").ids, (Ids{0, 1, 0, 1}));
  EXPECT_EQ(encoded_piece(*fused, "ax\u00e9ax").ranges, (Ranges{{0, 1}, {1, 4}, {4, 5}, {5, 6}}));
}

TEST(Bpe, AllBytesOfACharacterHaveTokensOrItIsUnknown) {
  const auto model = bpe_of({"<0xC3>", "<0xA9>", "<0x78>", "?"}, Json::array(),
                            {{"unk_token", "?"}, {"byte_fallback", true}});
  EXPECT_EQ(encoded_piece(*model, "\u00e9x").ids, (Ids{0, 1, 2}));
  EXPECT_EQ(encoded_piece(*model, "\u00e9x").ranges, (Ranges{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(encoded_piece(*model, "\u00e8").ids, (Ids{3})) << "its first byte alone has one";
}

TEST(Bpe, BytesAreSpelledByTheirCharacters) {
  const auto model = bpe_of({"a", "\u0120", "\u0120a", "\u00c3"}, Json::array({"\u0120 a"}),
                            Json::object(), /*pieces_are_bytes=*/true);
  EXPECT_EQ(encoded_piece(*model, " a").ids, (Ids{2}));
  EXPECT_EQ(encoded_piece(*model, " a").ranges, (Ranges{{0, 2}}));
  EXPECT_EQ(encoded_piece(*model, "\xc3").ids, (Ids{3})) << "a byte, not a character";
}

TEST(Bpe, APieceThatIsATokenMayBeItWhateverTheMergesSay) {
  const std::vector<std::string> tokens = {"a", "b", "aba", "\u0120b"};
  EXPECT_EQ(encoded_piece(*bpe_of(tokens, Json::array()), "aba").ids, (Ids{0, 1, 0}));
  const Json whole = {{"ignore_merges", true}};
  EXPECT_EQ(encoded_piece(*bpe_of(tokens, Json::array(), whole), "aba").ids, (Ids{2}));
  EXPECT_EQ(encoded_piece(*bpe_of(tokens, Json::array(), whole), "abab").ids, (Ids{0, 1, 0, 1}));
  EXPECT_EQ(encoded_piece(*bpe_of(tokens, Json::array(), whole, true), " b").ids, (Ids{3}));
}

TEST(Bpe, SymbolsInsideAndAtTheEndOfAWordAreMarked) {
  const auto model = bpe_of({"a", "a</w>", "##b", "##b</w>", "ab"}, Json::array({"a ##b"}),
                            {{"continuing_subword_prefix", "##"}, {"end_of_word_suffix", "</w>"}});
  EXPECT_EQ(encoded_piece(*model, "a").ids, (Ids{1}));
  EXPECT_EQ(encoded_piece(*model, "ab").ids, (Ids{0, 3}));
  EXPECT_EQ(encoded_piece(*model, "abb").ids, (Ids{4, 3})) << "a merge drops the mark inside";
  EXPECT_EQ(encoded_piece(*model, "abb").ranges, (Ranges{{0, 2}, {2, 3}}));
}

// A text that comes as one piece is encoded word by word only where nothing merges across words.
TEST(Bpe, AMergeMayCrossTheBeginningOfAWord) {
  const std::string mark = "\u2581";
  const std::vector<std::string> tokens = {mark, "a", mark + "a", mark + mark};
  const auto words = bpe_of(tokens, Json::array({mark + " a", mark + " " + mark}));
  const auto two = encoded_piece(*words, mark + "a" + mark + mark + "a");
  EXPECT_EQ(two.ids, (Ids{2, 0, 2}));
  EXPECT_EQ(two.ranges, (Ranges{{0, 4}, {4, 7}, {7, 11}}));
  std::vector<std::string> crossing = tokens;
  crossing.push_back("a" + mark);
  const auto across = bpe_of(crossing, Json::array({"a " + mark, mark + " a"}));
  EXPECT_EQ(encoded_piece(*across, mark + "a" + mark + "a").ids, (Ids{0, 4, 1}));
}

TEST(Bpe, LongPiecesAreEncodedAsShortOnes) {
  const auto model = bpe_of({"a", "b", "ab"}, Json::array({"a b"}));
  std::string piece;
  for (int i = 0; i < 100; ++i) piece += "ab";
  EXPECT_EQ(encoded_piece(*model, piece).ids, Ids(100, 2));
}

TEST(Bpe, SaysWhatIsWrongWithAModel) {
  const auto failure = [](const Json& merges, const Json& options) {
    return bpe_from_json(bpe_json({"a", "b"}, merges, options), false).status();
  };
  const Json none = Json::object();
  expect_failure(failure(Json::array({"a b"}), none), ErrorCode::kInvalidArgument, {"merge"});
  expect_failure(failure(Json::array({"a x"}), none), ErrorCode::kInvalidArgument, {"merge"});
  for (const Json& merge : {Json("ab"), Json("a b c"), Json(7), Json{"a"}})
    expect_failure(failure(Json::array({merge}), none), ErrorCode::kInvalidArgument,
                   {"merge 0: is not a pair of tokens"});
  expect_failure(failure(Json::array(), {{"unk_token", "x"}}), ErrorCode::kInvalidArgument,
                 {"unk_token x is not in the vocabulary"});
  expect_failure(failure(Json::array(), {{"dropout", 0.1}}), ErrorCode::kUnimplemented,
                 {"dropout"});
  EXPECT_TRUE(failure(Json::array(), {{"dropout", 0.0}}).ok());
  EXPECT_TRUE(failure(Json::array(), {{"dropout", nullptr}}).ok());
}

}  // namespace
}  // namespace rl
