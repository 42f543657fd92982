#include "rl/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <vector>

#include <nlohmann/json.hpp>

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;
using Ids = std::vector<std::int32_t>;

// A byte-level BPE over "a", "b", " " (G with dot) and two merges, with one special and one
// ordinary added token.
json small_tokenizer() {
  return json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 6, "content": "[X]", "special": false, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                       "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1, "b": 2, "\u0120": 3, "ab": 4, "\u0120ab": 5}, "merges": [["a", "b"], ["\u0120", "ab"]]}
  })");
}

Tokenizer load(const json& j) {
  auto tokenizer = Tokenizer::from_json(j.dump(), "t.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  return std::move(tokenizer.value());
}

TEST(Tokenizer, EncodesAndDecodes) {
  const Tokenizer tokenizer = load(small_tokenizer());
  EXPECT_EQ(*tokenizer.encode("ab abb", false), (Ids{4, 5, 2}));
  EXPECT_EQ(*tokenizer.encode("ab", true), (Ids{0, 4}));
  EXPECT_EQ(*tokenizer.encode("", true), (Ids{0}));
  EXPECT_EQ(*tokenizer.encode("", false), (Ids{}));
  EXPECT_EQ(*tokenizer.encode("ab[X]<s>a", false), (Ids{4, 6, 0, 1}));
  EXPECT_EQ(tokenizer.decode(Ids{0, 4, 6, 5}, true), "ab[X] ab");
  EXPECT_EQ(tokenizer.decode(Ids{0, 4, 6, 5}, false), "<s>ab[X] ab");
}

TEST(Tokenizer, KnowsItsVocabulary) {
  const Tokenizer tokenizer = load(small_tokenizer());
  EXPECT_EQ(tokenizer.vocab_size(), 7);
  EXPECT_EQ(tokenizer.token_to_id("ab"), 4);
  EXPECT_EQ(tokenizer.token_to_id("[X]"), 6);
  EXPECT_EQ(tokenizer.token_to_id("abb"), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(6), "[X]");
  EXPECT_EQ(tokenizer.id_to_token(7), "");
  EXPECT_EQ(tokenizer.id_to_token(-1), "");
  EXPECT_TRUE(tokenizer.is_special(0));
  EXPECT_FALSE(tokenizer.is_special(6));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8WithTheOffset) {
  const Tokenizer tokenizer = load(small_tokenizer());
  auto ids = tokenizer.encode("abc\xff", false);
  EXPECT_EQ(ids.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(ids.status().message().find("byte 3"), std::string::npos) << ids.status().message();
}

TEST(Tokenizer, UnknownIdsAreLeftOutOrNamed) {
  const Tokenizer tokenizer = load(small_tokenizer());
  EXPECT_EQ(tokenizer.decode(Ids{1, 99, -5, 2}, false), "ab");
  auto checked = tokenizer.decode_checked(Ids{1, 99}, false);
  EXPECT_EQ(checked.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(checked.status().message().find("id 99 at position 1"), std::string::npos)
      << checked.status().message();
}

TEST(Tokenizer, AddedTokensMindWordsAndSpaces) {
  json j = small_tokenizer();
  j["added_tokens"] =
      json::parse(R"([{"id": 6, "content": "ba", "single_word": true, "normalized": false},
                                      {"id": 7, "content": "[L]", "lstrip": true, "normalized": false},
                                      {"id": 8, "content": "[R]", "rstrip": true, "normalized": false},
                                      {"id": 9, "content": "[LR]", "normalized": false},
                                      {"id": 10, "content": "[LR]a", "normalized": false}])");
  const Tokenizer tokenizer = load(j);
  EXPECT_EQ(*tokenizer.encode("ba", false), (Ids{6}));
  EXPECT_EQ(*tokenizer.encode("aba", false), (Ids{4, 1}));
  EXPECT_EQ(*tokenizer.encode("a  [L] b", false), (Ids{1, 7, 3, 2}));
  EXPECT_EQ(*tokenizer.encode("a[R]  b", false), (Ids{1, 8, 2}));
  EXPECT_EQ(*tokenizer.encode("[LR]ab", false), (Ids{10, 2}));  // the longest of those at one place
}

// A piece far longer than the quadratic merge takes must give the same ids as the short way would.
TEST(Tokenizer, LongPiecesMergeLikeShortOnes) {
  const Tokenizer tokenizer = load(small_tokenizer());
  std::string text;
  Ids expected;
  for (int i = 0; i < 5000; ++i) {
    text += "aab";
    expected.insert(expected.end(), {1, 4});
  }
  EXPECT_EQ(*tokenizer.encode(text, false), expected);
}

// ---- what cannot be loaded says so by name ----

struct BadTokenizer {
  const char* what;
  const char* patch;  // JSON merge patch on small_tokenizer
  ErrorCode code;
  const char* mentions;
};

class TokenizerRefuses : public ::testing::TestWithParam<BadTokenizer> {};

TEST_P(TokenizerRefuses, ByName) {
  json j = small_tokenizer();
  j.merge_patch(json::parse(GetParam().patch));
  auto status = Tokenizer::from_json(j.dump(), "t.json").status();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_NE(status.message().find(GetParam().mentions), std::string::npos) << status.message();
  EXPECT_EQ(status.message().rfind("t.json: ", 0), 0u) << status.message();
}

INSTANTIATE_TEST_SUITE_P(
    All, TokenizerRefuses,
    ::testing::Values(
        BadTokenizer{"pre_tokenizer", R"({"pre_tokenizer":{"type":"Odd"}})",
                     ErrorCode::kUnimplemented, "Odd"},
        BadTokenizer{"normalizer", R"({"normalizer":{"type":"Odd"}})", ErrorCode::kUnimplemented,
                     "Odd"},
        BadTokenizer{"precompiled", R"({"normalizer":{"type":"Precompiled"}})",
                     ErrorCode::kInvalidArgument, "precompiled_charsmap"},
        BadTokenizer{"base64",
                     R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":"*"}})",
                     ErrorCode::kInvalidArgument, "base64"},
        BadTokenizer{"charsmap",
                     R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"}})",
                     ErrorCode::kInvalidArgument, "precompiled_charsmap"},
        BadTokenizer{"decoder", R"({"decoder":{"type":"CTC"}})", ErrorCode::kUnimplemented, "CTC"},
        BadTokenizer{"post_processor", R"({"post_processor":{"type":"Odd"}})",
                     ErrorCode::kUnimplemented, "Odd"},
        BadTokenizer{"model", R"({"model":{"type":"Neural"}})", ErrorCode::kUnimplemented,
                     "Neural"},
        BadTokenizer{"no_model", R"({"model":null})", ErrorCode::kInvalidArgument, "model"},
        BadTokenizer{"dropout", R"({"model":{"dropout":0.1}})", ErrorCode::kUnimplemented,
                     "dropout"},
        BadTokenizer{"no_type", R"({"decoder":{"type":null}})", ErrorCode::kInvalidArgument,
                     "decoder: type"},
        BadTokenizer{"wrong_type", R"({"decoder":{"type":7}})", ErrorCode::kInvalidArgument,
                     "type is number"},
        BadTokenizer{"id_negative", R"({"model":{"vocab":{"a":-1}}})", ErrorCode::kInvalidArgument,
                     "\"a\""},
        BadTokenizer{"id_huge", R"({"model":{"vocab":{"a":2000000000}}})",
                     ErrorCode::kInvalidArgument, "\"a\""},
        BadTokenizer{"id_2_60", R"({"model":{"vocab":{"a":1152921504606846976}}})",
                     ErrorCode::kInvalidArgument, "\"a\""},
        BadTokenizer{"id_twice", R"({"model":{"vocab":{"a":2}}})", ErrorCode::kInvalidArgument,
                     "same id 2"},
        BadTokenizer{"merge_unknown", R"({"model":{"merges":[["a","z"]]}})",
                     ErrorCode::kInvalidArgument, "\"z\""},
        BadTokenizer{"merge_result", R"({"model":{"merges":[["b","a"]]}})",
                     ErrorCode::kInvalidArgument, "\"ba\""},
        BadTokenizer{"merge_shape", R"({"model":{"merges":["ab"]}})", ErrorCode::kInvalidArgument,
                     "merge 0"},
        BadTokenizer{"unknown_token", R"({"model":{"unk_token":"<unk>"}})",
                     ErrorCode::kInvalidArgument, "<unk>"},
        BadTokenizer{"added_id", R"({"added_tokens":[{"id":1099511627776,"content":"x"}]})",
                     ErrorCode::kInvalidArgument, "added_tokens[0]"},
        BadTokenizer{"added_content", R"({"added_tokens":[{"id":1}]})", ErrorCode::kInvalidArgument,
                     "content"},
        BadTokenizer{
            "regex",
            R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"}})",
            ErrorCode::kInvalidArgument, "(a"},
        BadTokenizer{
            "regex_class",
            R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a&&b]"},"behavior":"Isolated"}})",
            ErrorCode::kUnimplemented, "&&"},
        BadTokenizer{
            "behavior",
            R"({"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Odd"}})",
            ErrorCode::kUnimplemented, "Odd"},
        BadTokenizer{"template", R"({"post_processor":{"single":[{"SpecialToken":{"id":"<x>"}}]}})",
                     ErrorCode::kInvalidArgument, "<x>"},
        BadTokenizer{"template_empty", R"({"post_processor":{"single":[]}})",
                     ErrorCode::kInvalidArgument, "one Sequence"}),
    [](const auto& test) { return std::string(test.param.what); });

TEST(TokenizerLoad, DeepNestingIsAnErrorNotACrash) {
  std::string nested = R"({"type":"Sequence","normalizers":[])";
  for (int i = 0; i < 5000; ++i) nested = R"({"type":"Sequence","normalizers":[)" + nested + "]}";
  auto status =
      Tokenizer::from_json(R"({"normalizer":)" + nested + R"(},"model":{}})", "t.json").status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
}

TEST(TokenizerLoad, NotJson) {
  for (const char* bad : {"", "{", "[]", "null", "{\"a\":\"\xff\"}"}) {
    EXPECT_EQ(Tokenizer::from_json(bad, "t.json").status().code(), ErrorCode::kInvalidArgument)
        << bad;
  }
}

}  // namespace
}  // namespace rl
