#include "rl/tokenizer/unigram.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
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
using Scored = std::vector<std::pair<std::string, double>>;

std::unique_ptr<TokenModel> unigram_of(const Scored& tokens, bool byte_fallback = false) {
  Json vocab = Json::array();
  for (const auto& [token, score] : tokens) vocab.push_back(Json::array({token, score}));
  auto model =
      unigram_from_json({{"vocab", vocab}, {"unk_id", 0}, {"byte_fallback", byte_fallback}});
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

Unigram scored_unigram(const Scored& tokens, UnigramOptions options) {
  std::vector<std::pair<std::string_view, std::int64_t>> entries;
  std::vector<double> scores;
  for (const auto& [token, score] : tokens) {
    entries.emplace_back(token, static_cast<std::int64_t>(entries.size()));
    scores.push_back(score);
  }
  return Unigram(*Vocabulary::make(entries), std::move(scores), std::move(options));
}

TEST(Unigram, TheLargestSumOfScoresWins) {
  const Scored parts = {{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -3}};
  EXPECT_EQ(encoded_piece(*unigram_of(parts), "ab").ids, (Ids{1, 2}));
  const Scored whole = {{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -1.5}};
  const auto pair = encoded_piece(*unigram_of(whole), "abba");
  EXPECT_EQ(pair.ids, (Ids{3, 2, 1}));
  EXPECT_EQ(pair.ranges, (Ranges{{0, 2}, {2, 3}, {3, 4}}));
  // The best beginning of all, "abc", is no part of the best whole.
  const Scored later = {{"<unk>", 0}, {"a", -3}, {"abc", -1}, {"bcd", -1}};
  EXPECT_EQ(encoded_piece(*unigram_of(later), "abcd").ids, (Ids{1, 3}));
}

TEST(Unigram, ARunOfUnknownCharactersIsOneTokenThatStandsForAllOfIt) {
  const auto model = unigram_of({{"<unk>", 0}, {"a", -1}});
  const auto run = encoded_piece(*model, "a\u00e9xaz");
  EXPECT_EQ(run.ids, (Ids{1, 0, 1, 0}));
  EXPECT_EQ(run.ranges, (Ranges{{0, 1}, {1, 4}, {4, 5}, {5, 6}}));
}

TEST(Unigram, AnUnknownRunIsItsBytesWhereAllHaveTokens) {
  const auto model =
      unigram_of({{"<unk>", 0}, {"a", -1}, {"<0xC3>", -2}, {"<0xA9>", -2}, {"<0x78>", -2}}, true);
  const auto bytes = encoded_piece(*model, "a\u00e9x");
  EXPECT_EQ(bytes.ids, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(bytes.ranges, (Ranges{{0, 1}, {1, 4}, {1, 4}, {1, 4}}));
  EXPECT_EQ(encoded_piece(*model, "\u00e9z").ids, (Ids{0})) << "one byte of the run has none";
}

// A penalty of 10 below the worst: any way through tokens is better than one unknown character.
TEST(Unigram, AnUnknownCharacterIsTheLastResort) {
  const auto model = unigram_of({{"<unk>", 0}, {"ab", -9}, {"b", -9}, {"c", -9}, {"bc", -1}});
  EXPECT_EQ(encoded_piece(*model, "abc").ids, (Ids{1, 3})) << "-18 rather than -19 - 1";
}

TEST(Unigram, OnlyTokensOfTextsAreFoundInThem) {
  const Scored tokens = {{"<unk>", 0}, {"<s>", 0}, {"<", -1}, {"s", -1}, {">", -1}};
  UnigramOptions options{.unknown_score = -20, .in_text = {}};
  EXPECT_EQ(encoded_piece(scored_unigram(tokens, options), "<s>").ids, (Ids{1}));
  options.in_text = {false, false, true, true, true};
  EXPECT_EQ(encoded_piece(scored_unigram(tokens, options), "<s>").ids, (Ids{2, 3, 4}));
}

TEST(Unigram, SumsMayBeOfSinglePrecision) {
  const Scored tokens = {{"<unk>", 0}, {"a", -1}, {"b", -1 + 1e-9}, {"ab", -2}};
  UnigramOptions options{.unknown_score = -20, .in_text = {}};
  EXPECT_EQ(encoded_piece(scored_unigram(tokens, options), "ab").ids, (Ids{1, 2}));
  options.single_precision = true;
  EXPECT_EQ(encoded_piece(scored_unigram(tokens, options), "ab").ids, (Ids{3}));
}

TEST(Unigram, SaysWhatIsWrongWithAModel) {
  const Json good = Json::array({{"<unk>", 0}, {"a", -1}});
  for (const Json& entry : {Json("b"), Json{"b"}, Json{"b", "-1"}, Json{7, -1}, Json{"b", -1, 2}}) {
    Json vocab = good;
    vocab.push_back(entry);
    expect_failure(unigram_from_json({{"vocab", vocab}, {"unk_id", 0}}).status(),
                   ErrorCode::kInvalidArgument, {"vocab entry 2 is not [token, score]"});
  }
  for (const int outside : {-1, 2})
    expect_failure(unigram_from_json({{"vocab", good}, {"unk_id", outside}}).status(),
                   ErrorCode::kInvalidArgument, {"outside the vocabulary"});
  expect_failure(unigram_from_json({{"vocab", Json::array()}, {"unk_id", 0}}).status(),
                 ErrorCode::kInvalidArgument, {"outside the vocabulary"});
  EXPECT_EQ(unigram_from_json({{"vocab", good}}).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
