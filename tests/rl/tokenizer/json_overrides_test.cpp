#include "rl/tokenizer/json_overrides.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/tokenizer/fake_parts.h"
#include "tests/rl/tokenizer/slow_files.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using Json = nlohmann::json;
using runtime::ErrorCode;
using support::expect_failure;
using testing::ByteModel;
using testing::slow_files;
using testing::vocabulary_of;

// The tokenizer.json `before` with the space options of `config`, for a class.
Json with_space_options(const std::string& class_name, const char* config, Json before,
                        const std::string& model_type = "") {
  SlowTokenizerFiles files = slow_files({.config = config});
  files.class_name = class_name;
  files.model_type = model_type;
  const auto status = apply_space_options(files, before);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return before;
}

// Qwen2's form, where the step is in a sequence.
Json byte_level_tokenizer(bool space) {
  return {
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", Json::array({{{"type", "Digits"}},
                                       {{"type", "ByteLevel"}, {"add_prefix_space", space}}})}}}};
}

Json llama_tokenizer() {
  return Json::parse(R"({"pre_tokenizer": null, "decoder": null,
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}})");
}

TEST(SpaceOptions, ByteLevelClassesPutTheSpaceWhereTheFilesSay) {
  const Json with = byte_level_tokenizer(true), without = byte_level_tokenizer(false);
  EXPECT_EQ(with_space_options("Qwen2Tokenizer", R"({"add_prefix_space": true})", without), with);
  EXPECT_EQ(with_space_options("Qwen2Tokenizer", R"({"add_prefix_space": false})", with), without);
  EXPECT_EQ(with_space_options("Qwen2Tokenizer", "{}", with), with);
  EXPECT_EQ(with_space_options("GPT2Tokenizer", "{}", with), without)
      << "GPT-2's class has another answer";
  EXPECT_EQ(with_space_options("PreTrainedTokenizer", R"({"add_prefix_space": false})", with), with)
      << "this class takes the tokenizer.json as it is";
}

TEST(SpaceOptions, LlamasClassMarksSpacesAsTheFilesSay) {
  const auto scheme = [](const char* config) {
    const Json made = with_space_options("LlamaTokenizer", config, llama_tokenizer());
    EXPECT_TRUE(made["normalizer"].is_null());
    const std::string last = made["decoder"]["decoders"].back()["type"];
    return made["pre_tokenizer"]["prepend_scheme"].get<std::string>() + " " + last;
  };
  EXPECT_EQ(scheme(R"({"legacy": true})"), "always Strip");
  EXPECT_EQ(scheme(R"({"legacy": false})"), "first Strip");
  EXPECT_EQ(scheme(R"({"add_prefix_space": true})"), "first Strip");
  EXPECT_EQ(scheme(R"({"legacy": true, "add_prefix_space": false})"), "never Fuse")
      << "no space was put in front that decoding would take away";
}

TEST(SpaceOptions, ATokenizerThatIsNoLlamasKeepsItsParts) {
  const char* config = R"({"legacy": false, "add_prefix_space": true})";
  const Json bytes = byte_level_tokenizer(false);
  EXPECT_EQ(with_space_options("LlamaTokenizer", config, bytes), bytes)
      << "DeepSeek's names this class";
  const Json marks = llama_tokenizer();
  EXPECT_EQ(with_space_options("LlamaTokenizer", config, marks, "phi3"), marks);
  EXPECT_NE(with_space_options("LlamaTokenizer", config, marks, "llama"), marks);
  EXPECT_EQ(with_space_options("LlamaTokenizer", "{}", marks), marks);
}

TEST(SpaceOptions, AreTrueOrFalse) {
  Json tokenizer = llama_tokenizer();
  for (const char* key : {"legacy", "add_prefix_space"}) {
    const std::string config = std::string("{\"") + key + "\": \"yes\"}";
    expect_failure(apply_space_options(slow_files({.config = config}), tokenizer),
                   ErrorCode::kInvalidArgument, {"tokenizer_config.json", key});
  }
}

// A pipeline with the vocabulary a: 0, b: 1 and the added tokens <s>: 2 and <x>: 3.
class AddedTokensOfFiles : public ::testing::Test {
 protected:
  AddedTokensOfFiles() {
    auto added = AddedTokens::make({{.id = 2, .content = "<s>", .special = true},
                                    {.id = 3, .content = "<x>", .normalized = true}},
                                   nullptr);
    EXPECT_TRUE(added.ok()) << added.status().to_string();
    pipeline_.added_tokens = added.value_or({});
    use_model("Unigram");
  }
  void use_model(const std::string& kind) {
    pipeline_.model = std::make_unique<ByteModel>(vocabulary_of({"a", "b"}), kind);
  }
  void apply(const testing::SlowFileTexts& texts) {
    const auto status = apply_added_tokens(slow_files(texts), pipeline_);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  std::map<std::string, std::int32_t> ids() const {
    std::map<std::string, std::int32_t> all;
    for (const AddedToken& one : pipeline_.added_tokens.tokens()) all[one.content] = one.id;
    return all;
  }
  const AddedToken& token(const std::string& content) const {
    static const AddedToken kNone;
    const AddedToken* found = pipeline_.added_tokens.find(content);
    return found == nullptr ? kNone : *found;
  }

  TokenizerPipeline pipeline_;
};

using IdsByText = std::map<std::string, std::int32_t>;

TEST_F(AddedTokensOfFiles, NewOnesGetTheNextIdsInTheOrderOfThoseThatTheFileSays) {
  apply({.config = R"({"added_tokens_decoder": {"90": {"content": "[D]"}, "80": {"content": "[C]"},
                       "70": {"content": "b"}}, "pad_token": "<p>"})"});
  EXPECT_EQ(ids(),
            (IdsByText{{"<s>", 2}, {"<x>", 3}, {"b", 1}, {"[C]", 4}, {"[D]", 5}, {"<p>", 6}}));
  EXPECT_TRUE(token("<p>").special);
  EXPECT_FALSE(token("[C]").special);
}

TEST_F(AddedTokensOfFiles, FlagsAreTheFilesButASpecialTokenStaysSpecial) {
  apply({.config = R"({"added_tokens_decoder": {
      "2": {"content": "<s>", "lstrip": true, "special": false, "normalized": false},
      "3": {"content": "<x>", "normalized": false}}})"});
  EXPECT_EQ(ids(), (IdsByText{{"<s>", 2}, {"<x>", 3}}));
  EXPECT_TRUE(token("<s>").special);
  EXPECT_TRUE(token("<s>").strip_left);
  EXPECT_FALSE(token("<x>").normalized);
}

TEST_F(AddedTokensOfFiles, ATokenUnderATakenIdIsTheOneThatHasIt) {
  apply({.config = R"({"pad_token": "[D]"})", .added = R"({"[C]": 3, "[E]": 80, "[D]": 70})"});
  EXPECT_EQ(ids(), (IdsByText{{"<s>", 2}, {"<x>", 3}, {"[D]", 4}, {"[E]", 5}}));
  EXPECT_TRUE(token("[D]").special);
  EXPECT_FALSE(token("[E]").special);
}

TEST_F(AddedTokensOfFiles, SpecialTokensMayBeTextLikeAnyOther) {
  apply({.config = R"({"split_special_tokens": true})"});
  std::vector<Segment> segments;
  pipeline_.added_tokens.split_original("<s>", segments);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].id, -1);
  EXPECT_TRUE(token("<x>").in_text);
}

TEST_F(AddedTokensOfFiles, TextsOfBpeAreCleanedUpOnlyByTheOptionThatSaysSo) {
  const char* config = R"({"clean_up_tokenization_spaces": true})";
  apply({.config = config});
  EXPECT_TRUE(pipeline_.cleans_up_spaces);
  use_model("BPE");
  apply({.config = config});
  EXPECT_FALSE(pipeline_.cleans_up_spaces);
  apply({.config = R"({"clean_up_tokenization_spaces": true,
      "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": true})"});
  EXPECT_TRUE(pipeline_.cleans_up_spaces);
}

TEST_F(AddedTokensOfFiles, AClassTakesForGrantedWhatTheVocabularyHas) {
  const auto texts_of = [&](const std::string& class_name, const char* config) {
    pipeline_.special_token_texts.clear();
    SlowTokenizerFiles files = slow_files({.config = config});
    files.class_name = class_name;
    add_class_defaults(files, pipeline_);
    return pipeline_.special_token_texts;
  };
  using Texts = std::map<std::string, std::string>;
  EXPECT_EQ(texts_of("LlamaTokenizer", "{}"), (Texts{{"bos_token", "<s>"}})) << "no </s> or <unk>";
  EXPECT_EQ(texts_of("LlamaTokenizer", R"({"bos_token": null})"), Texts{});
  EXPECT_EQ(texts_of("PreTrainedTokenizer", "{}"), Texts{});
}

}  // namespace
}  // namespace rl
