#include "rl/tokenizer/vocabulary_files.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/tokenizer/fake_parts.h"
#include "tests/rl/tokenizer/slow_files.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;
using testing::slow_files;
using testing::vocabulary_of;
using IdsAndTexts = std::vector<std::pair<std::int32_t, std::string>>;

class SlowFilesFolder : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
  }
  runtime::Result<SlowTokenizerFiles> read() { return read_slow_tokenizer_files(folder_.path()); }

  support::TemporaryFolder folder_;
};

TEST_F(SlowFilesFolder, AnyOfThemMayBeMissing) {
  const auto none = read();
  ASSERT_TRUE(none.ok()) << none.status().to_string();
  EXPECT_TRUE(none->config.is_null() && none->map.is_null() && none->added.is_null());
  EXPECT_EQ(none->class_name + none->model_type, "");
  put("special_tokens_map.json", R"({"b_token": "b", "a_token": "a"})");
  put("config.json", R"({"tokenizer_class": "GPT2TokenizerFast", "model_type": "gpt2"})");
  const auto some = read();
  ASSERT_TRUE(some.ok()) << some.status().to_string();
  EXPECT_EQ(some->map.size(), 2u);
  EXPECT_EQ(some->ordered_map.begin().key(), "b_token");
  EXPECT_TRUE(some->config.is_null());
  EXPECT_EQ(some->class_name, "GPT2Tokenizer") << "the fast one reads the same files";
  EXPECT_EQ(some->model_type, "gpt2");
}

TEST_F(SlowFilesFolder, TheTokenizersOwnConfigNamesItsClass) {
  put("config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  put("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_EQ(read().value_or({}).class_name, "Qwen2Tokenizer");
}

TEST_F(SlowFilesFolder, DamageNamesTheFile) {
  put("added_tokens.json", "[]");
  expect_failure(read().status(), ErrorCode::kInvalidArgument, {"added_tokens.json"});
  put("added_tokens.json", "{}");
  put("config.json", R"({"model_type": 3})");
  expect_failure(read().status(), ErrorCode::kInvalidArgument, {"/config.json", "model_type"});
  put("tokenizer_config.json", R"({"tokenizer_class": 3})");
  expect_failure(read().status(), ErrorCode::kInvalidArgument,
                 {"tokenizer_config.json", "tokenizer_class"});
}

// With the vocabulary a: 0, b: 1.
runtime::Result<std::vector<AddedToken>> added_to_ab(const SlowTokenizerFiles& files,
                                                     std::vector<AddedToken> marked = {}) {
  static constexpr SpecialTokenDefault kDefaults[] = {{"unk_token", "<unk>"}};
  return slow_added_tokens(files, kDefaults, vocabulary_of({"a", "b"}), std::move(marked));
}

IdsAndTexts ids_and_texts(const runtime::Result<std::vector<AddedToken>>& tokens) {
  EXPECT_TRUE(tokens.ok()) << tokens.status().to_string();
  IdsAndTexts all;
  for (const AddedToken& token : tokens.value_or({})) all.emplace_back(token.id, token.content);
  return all;
}

TEST(SlowAddedTokens, ListedOnesHaveTheirIdsAndSpecialOnesTheNext) {
  const auto files = slow_files({.config = R"({"bos_token": "<s>", "eos_token": "b",
                                              "additional_special_tokens": ["<x>"]})",
                                 .added = R"({"[D]": 10, "[C]": 5})"});
  EXPECT_EQ(
      ids_and_texts(added_to_ab(files)),
      (IdsAndTexts{{5, "[C]"}, {10, "[D]"}, {11, "<s>"}, {1, "b"}, {12, "<unk>"}, {13, "<x>"}}))
      << "a token of the vocabulary keeps its id";
}

TEST(SlowAddedTokens, OnlyThoseThatAreNamedSpecialAreSo) {
  const auto files =
      slow_files({.config = R"({"pad_token": "[C]", "additional_special_tokens": ["[E]"]})",
                  .added = R"({"[C]": 2, "[D]": 3, "[E]": 4})"});
  const auto tokens = added_to_ab(files);
  ASSERT_TRUE(tokens.ok()) << tokens.status().to_string();
  ASSERT_EQ(tokens->size(), 4u);  // with <unk>
  for (const AddedToken& token : *tokens) {
    EXPECT_EQ(token.special, token.content != "[D]") << token.content;
    EXPECT_EQ(token.normalized, token.content == "[D]") << token.content;
  }
}

TEST(SlowAddedTokens, AnAddedTokensDecoderTakesThePlaceOfTheOtherList) {
  const auto files = slow_files({.config = R"({"unk_token": "a", "added_tokens_decoder":
      {"10": {"content": "[D]", "special": true}, "9": {"content": "[C]", "lstrip": true}}})",
                                 .added = R"({"[E]": 4})"});
  const auto tokens = added_to_ab(files, {{.id = 1, .content = "b", .special = true}});
  EXPECT_EQ(ids_and_texts(tokens), (IdsAndTexts{{1, "b"}, {9, "[C]"}, {10, "[D]"}, {0, "a"}}))
      << "those that the vocabulary marks come first, then by number";
  EXPECT_TRUE(tokens->at(1).strip_left && !tokens->at(1).special);
  EXPECT_TRUE(tokens->at(2).special);
}

TEST(SlowAddedTokens, NoTwoTokensHaveOneId) {
  const auto expect = [](const testing::SlowFileTexts& texts,
                         const std::vector<std::string>& mentions) {
    expect_failure(added_to_ab(slow_files(texts)).status(), ErrorCode::kInvalidArgument, mentions);
  };
  expect({.added = R"({"[C]": 7, "[D]": 7})"}, {"added_tokens.json", "[C]", "[D]", "same id 7"});
  expect({.added = R"({"[C]": 1})"}, {"added_tokens.json", "[C]", "id 1", "\"b\""});
  expect({.added = R"({"[C]": "1"})"}, {"added_tokens.json", "[C]"});
  expect({.config = R"({"added_tokens_decoder": {"7": {"content": "[C]"}, "8x": "[D]"}})"},
         {"added_tokens_decoder", "\"8x\" is not a token id"});
  expect({.config = R"({"added_tokens_decoder": {"7": {"special": true}}})"},
         {"tokenizer_config.json: added_tokens_decoder: 7: ", "content"});
}

TEST(SpecialTokenDefaults, AreTakenUnlessTheFilesDenyThem) {
  TokenizerPipeline pipeline;
  const SpecialTokenDefault defaults[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  add_special_token_defaults(slow_files({.config = R"({"eos_token": null})"}), defaults, pipeline);
  EXPECT_EQ(pipeline.special_token_texts,
            (std::map<std::string, std::string>{{"bos_token", "<s>"}}));
}

TEST(BeginAndEnd, AreAddedAsTheFilesOrElseTheClassSay) {
  const auto ends_with = [](const char* config, bool otherwise) {
    TokenizerPipeline pipeline;
    pipeline.bos_id = 1;
    pipeline.eos_id = 2;
    EXPECT_TRUE(add_begin_and_end(slow_files({.config = config}), otherwise, false, pipeline).ok());
    auto ids = pipeline.post_processor.prefix;
    ids.push_back(0);
    ids.insert(ids.end(), pipeline.post_processor.suffix.begin(),
               pipeline.post_processor.suffix.end());
    return ids;
  };
  using Around = std::vector<std::int32_t>;
  EXPECT_EQ(ends_with("{}", true), (Around{1, 0}));
  EXPECT_EQ(ends_with("{}", false), (Around{0}));
  EXPECT_EQ(ends_with(R"({"add_bos_token": false, "add_eos_token": true})", true), (Around{0, 2}));
}

TEST(BeginAndEnd, ATokenThatTheFolderDoesNotDefineIsNotAdded) {
  TokenizerPipeline pipeline;
  EXPECT_TRUE(add_begin_and_end({}, true, true, pipeline).ok());
  EXPECT_TRUE(pipeline.post_processor.prefix.empty() && pipeline.post_processor.suffix.empty());
  expect_failure(add_begin_and_end(slow_files({.config = R"({"add_eos_token": "yes"})"}), true,
                                   true, pipeline),
                 ErrorCode::kInvalidArgument, {"tokenizer_config.json", "add_eos_token"});
}

}  // namespace
}  // namespace rl
