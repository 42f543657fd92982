#include "rl/tokenizer/pre_tokenizer.h"

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
using Strings = std::vector<std::string>;

std::unique_ptr<PreTokenizer> pre_tokenizer_of(const Json& component) {
  auto made = pre_tokenizer_from_json(component);
  EXPECT_TRUE(made.ok()) << component << ": " << made.status().to_string();
  return std::move(*made);
}

Strings pieces_by(const PreTokenizer& pre_tokenizer, const std::string& text,
                  bool starts_original = true) {
  PieceList list;
  RegexScratch scratch;
  list.reset(text, starts_original);
  const runtime::Status status = pre_tokenizer.apply(list, scratch);
  EXPECT_TRUE(status.ok()) << status.to_string();
  Strings pieces;
  for (const Piece& piece : list.pieces) pieces.emplace_back(list.view(piece));
  return pieces;
}

Strings pieces_by(const Json& component, const std::string& text, bool starts_original = true) {
  return pieces_by(*pre_tokenizer_of(component), text, starts_original);
}

Json split_at(const Json& pattern, const std::string& behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}

TEST(PreTokenizer, WhatASplitterMatchesBecomesWhatItsBehaviorSays) {
  const std::string text = "the-final--countdown";
  const Json dash = {{"String", "-"}};
  const std::pair<const char*, Strings> expected[] = {
      {"Removed", {"the", "final", "countdown"}},
      {"Isolated", {"the", "-", "final", "-", "-", "countdown"}},
      {"MergedWithPrevious", {"the-", "final-", "-", "countdown"}},
      {"MergedWithNext", {"the", "-final", "-", "-countdown"}},
      {"Contiguous", {"the", "-", "final", "--", "countdown"}}};
  for (const auto& [behavior, pieces] : expected)
    EXPECT_EQ(pieces_by(split_at(dash, behavior), text), pieces) << behavior;
}

TEST(PreTokenizer, InvertedWhatIsBetweenMatchesIsTheSplitter) {
  const Json letters = {{"Regex", "[a-z]+"}};
  EXPECT_EQ(pieces_by(split_at(letters, "Removed"), "ab12cd"), (Strings{"12"}));
  EXPECT_EQ(pieces_by(split_at(letters, "Removed", true), "ab12cd"), (Strings{"ab", "cd"}));
}

TEST(PreTokenizer, NothingIsCutFromNothingAndSplittersMayTakeAll) {
  for (const Json& component :
       {Json{{"type", "ByteLevel"}}, Json{{"type", "Metaspace"}}, Json{{"type", "FixedLength"}},
        Json{{"type", "BertPreTokenizer"}}, Json{{"type", "UnicodeScripts"}}})
    EXPECT_EQ(pieces_by(component, ""), Strings()) << component;
  EXPECT_EQ(pieces_by(Json{{"type", "WhitespaceSplit"}}, "  "), Strings());
}

TEST(PreTokenizer, CharactersAreCountedNotBytes) {
  EXPECT_EQ(pieces_by({{"type", "FixedLength"}, {"length", 2}}, "a\u00e9\u4f60b!"),
            (Strings{"a\u00e9", "\u4f60b", "!"}));
  EXPECT_EQ(pieces_by({{"type", "Digits"}, {"individual_digits", true}}, "a12\u0663"),
            (Strings{"a", "1", "2", "\u0663"}));
  EXPECT_EQ(pieces_by(Json{{"type", "Digits"}}, "a12b"), (Strings{"a", "12", "b"}));
}

TEST(PreTokenizer, AMarkInFrontIsForTheBeginningOfTheTextAlone) {
  const Json first = {{"type", "Metaspace"}, {"prepend_scheme", "first"}};
  EXPECT_EQ(pieces_by(first, "a b"), (Strings{"\u2581a", "\u2581b"}));
  EXPECT_EQ(pieces_by(first, "a b", /*starts_original=*/false), (Strings{"a", "\u2581b"}));
  EXPECT_EQ(pieces_by(first, " a"), (Strings{"\u2581a"})) << "there is one already";
  const Json by_words = {{"type", "Sequence"},
                         {"pretokenizers", {split_at({{"String", "-"}}, "Removed"), first}}};
  EXPECT_EQ(pieces_by(by_words, "a-b"), (Strings{"\u2581a", "b"}));
  EXPECT_EQ(pieces_by(by_words, "-a-b"), (Strings{"a", "b"})) << "the beginning is gone";
  const Json always = {{"type", "Metaspace"}, {"prepend_scheme", "always"}};
  const Json never = {{"type", "Metaspace"}, {"prepend_scheme", "never"}, {"split", false}};
  EXPECT_EQ(pieces_by(always, "a", false), (Strings{"\u2581a"}));
  EXPECT_EQ(pieces_by(never, "a b"), (Strings{"a\u2581b"}));
}

TEST(PreTokenizer, NewTextComesFromWhereTheOldTextDid) {
  PieceList list;
  RegexScratch scratch;
  const std::string text = "a b";
  list.reset(text, true);
  list.aligned = true;
  list.origins = {{10, 11}, {11, 12}, {12, 13}};
  const auto marks = pre_tokenizer_of({{"type", "Metaspace"}});
  ASSERT_TRUE(marks->apply(list, scratch).ok());
  EXPECT_EQ(list.text, "\u2581a\u2581b");
  const Piece a{10, 11}, space{11, 12}, b{12, 13};
  EXPECT_EQ(list.origins, (std::vector<Piece>{a, a, a, a, space, space, space, b}));
  const auto bytes = pre_tokenizer_of({{"type", "ByteLevel"}, {"add_prefix_space", false}});
  ASSERT_TRUE(bytes->apply(list, scratch).ok());
  EXPECT_EQ(list.origins.size(), list.text.size());
  EXPECT_EQ(list.origins.front(), a);
  EXPECT_EQ(list.origins.back(), b);
}

TEST(PreTokenizer, AByteLevelStepAtTheEndCanBeLeftToTheModel) {
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const auto alone = pre_tokenizer_of(bytes);
  EXPECT_EQ(pieces_by(*alone, "a \u00e9"), (Strings{"a", "\u0120\u00c3\u00a9"}));
  EXPECT_TRUE(alone->defer_byte_level());
  EXPECT_EQ(pieces_by(*alone, "a \u00e9"), (Strings{"a", " \u00e9"}));
  const auto sequence = [](const Json& first, const Json& second) {
    return pre_tokenizer_of({{"type", "Sequence"}, {"pretokenizers", {first, second}}});
  };
  const Json digits = {{"type", "Digits"}};
  EXPECT_TRUE(sequence(digits, bytes)->defer_byte_level());
  const auto in_between = sequence(bytes, digits);
  EXPECT_FALSE(in_between->defer_byte_level());
  EXPECT_EQ(pieces_by(*in_between, " a"), (Strings{"\u0120a"})) << "still spelled out";
}

TEST(PreTokenizer, PatternsOfGgufFilesAreAppliedInTurn) {
  const std::string_view patterns[] = {R"(\d)", R"(\p{L}+)"};
  auto made = make_byte_level_pre_tokenizer(patterns);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(pieces_by(**made, "ab12 c"), (Strings{"ab", "1", "2", "\u0120", "c"}));
  const std::string_view malformed[] = {"("};
  EXPECT_EQ(make_byte_level_pre_tokenizer(malformed).status().code(), ErrorCode::kInvalidArgument);
}

TEST(PreTokenizer, APatternThatDoesNotEndIsAnError) {
  PieceList list;
  RegexScratch scratch;
  const std::string text = std::string(64, 'a') + "b";
  list.reset(text, true);
  const auto endless = pre_tokenizer_of(split_at({{"Regex", "(a+)+$"}}, "Isolated"));
  EXPECT_EQ(endless->apply(list, scratch).code(), ErrorCode::kResourceExhausted);
}

TEST(PreTokenizer, WhatItWouldCutOtherwiseIsRefused) {
  const auto refused = [](const Json& component, ErrorCode code, const std::string& part) {
    expect_failure(pre_tokenizer_from_json(component).status(), code, {part});
  };
  refused({{"type", "Unheard"}}, ErrorCode::kUnimplemented, "Unheard");
  refused(split_at({{"String", "-"}}, "Kept"), ErrorCode::kUnimplemented, "Kept");
  refused({{"type", "Metaspace"}, {"prepend_scheme", "last"}}, ErrorCode::kUnimplemented, "last");
  refused({{"type", "Metaspace"}, {"replacement", "ab"}}, ErrorCode::kInvalidArgument,
          "not one character");
  refused({{"type", "FixedLength"}, {"length", 0}}, ErrorCode::kInvalidArgument, "not positive");
  Json nested = {{"type", "Digits"}};
  for (int depth = 0; depth < 1'000; ++depth)
    nested = Json{{"type", "Sequence"}, {"pretokenizers", Json::array({std::move(nested)})}};
  refused(nested, ErrorCode::kInvalidArgument, "nested too deeply");
}

}  // namespace
}  // namespace rl
