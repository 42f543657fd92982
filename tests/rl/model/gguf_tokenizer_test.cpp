#include "rl/model/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/model/fake_gguf.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;
using testing::FakeGguf;

// What a file says; a test changes what it is about.
struct WrittenTokenizer {
  std::string model = "gpt2";
  std::string split = "gpt-2";
  std::vector<std::string> tokens = {"a", "b", "ab", "<|end|>", "<unk>", "<tool>"};
  std::string types = "\1\1\1\3\2\4";  // the last three: control, unknown, user-defined
  std::vector<std::string> merges = {"a b"};

  void describe(FakeGguf& file) const {
    file.set_text("tokenizer.ggml.model", model);
    file.set_text("tokenizer.ggml.pre", split);
    file.set_texts("tokenizer.ggml.tokens", tokens);
    file.set_bytes("tokenizer.ggml.token_type", types);
    file.set_texts("tokenizer.ggml.merges", merges);
  }
};

GgufTokenizer tokenizer_of(const FakeGguf& file) {
  auto read = read_gguf_tokenizer(file);
  EXPECT_TRUE(read.ok()) << read.status().to_string();
  return read.ok() ? std::move(*read) : GgufTokenizer();
}

TEST(GgufTokenizer, AVocabularyBecomesABytePairModel) {
  FakeGguf file;
  WrittenTokenizer{}.describe(file);
  const GgufTokenizer made = tokenizer_of(file);
  EXPECT_EQ(json(made.tokenizer["model"]["vocab"]),
            (json{{"a", 0}, {"b", 1}, {"ab", 2}, {"<|end|>", 3}, {"<unk>", 4}, {"<tool>", 5}}));
  EXPECT_EQ(json(made.tokenizer["model"]["merges"]), json::parse(R"([["a", "b"]])"));
  EXPECT_EQ(made.tokenizer["model"]["ignore_merges"], false);
  std::vector<std::string> added;
  for (const auto& token : made.tokenizer["added_tokens"])
    added.push_back(token["id"].dump() + " " + token["content"].get<std::string>() + " " +
                    token["special"].dump());
  EXPECT_EQ(added, (std::vector<std::string>{"3 <|end|> true", "4 <unk> true", "5 <tool> false"}))
      << "what users define is text like any other";
}

// Llama 3's begins its texts where the file does not say.
TEST(GgufTokenizer, TextsBeginAndEndAsTheFileSays) {
  const auto framed = [](const std::string& split, const std::vector<std::string>& flags,
                         bool value) {
    FakeGguf file;
    WrittenTokenizer{.split = split}.describe(file);
    file.set_integer("tokenizer.ggml.bos_token_id", 3);
    file.set_integer("tokenizer.ggml.eos_token_id", 4);
    for (const std::string& flag : flags) file.set_bool("tokenizer.ggml." + flag, value);
    const GgufTokenizer made = tokenizer_of(file);
    EXPECT_EQ(made.config["bos_token"], "<|end|>");
    EXPECT_EQ(made.config["eos_token"], "<unk>");
    std::string pair;
    if (made.tokenizer["post_processor"].is_null()) return pair;
    for (const auto& part : made.tokenizer["post_processor"]["pair"])
      pair += part.begin().value()["id"].get<std::string>() + " ";
    return pair;
  };
  EXPECT_EQ(framed("gpt-2", {}, true), "");
  EXPECT_EQ(framed("gpt-2", {"add_bos_token"}, true), "<|end|> A <|end|> B ");
  EXPECT_EQ(framed("llama-bpe", {}, true), "<|end|> A <|end|> B ");
  EXPECT_EQ(framed("llama-bpe", {"add_bos_token"}, false), "");
  EXPECT_EQ(framed("gpt-2", {"add_bos_token", "add_eos_token"}, true),
            "<|end|> A <unk> <|end|> B <unk> ");
}

TEST(GgufTokenizer, AnIdIsOfTheVocabularyOrNone) {
  for (const std::int64_t none : {std::int64_t{-1}, std::int64_t{UINT32_MAX}}) {
    FakeGguf file;
    WrittenTokenizer{}.describe(file);
    file.set_integer("tokenizer.ggml.padding_token_id", none);
    EXPECT_FALSE(tokenizer_of(file).config.contains("pad_token")) << none;
  }
  for (const std::int64_t outside : {-2, 6}) {
    FakeGguf file;
    WrittenTokenizer{}.describe(file);
    file.set_integer("tokenizer.ggml.padding_token_id", outside);
    support::expect_failure(read_gguf_tokenizer(file).status(), ErrorCode::kInvalidArgument,
                            {"m.gguf: tokenizer.ggml.padding_token_id " + std::to_string(outside) +
                             " is outside the vocabulary"});
  }
}

TEST(GgufTokenizer, DamagedListsAreRefusedByName) {
  struct Case {
    WrittenTokenizer written;
    std::string named;
  };
  const Case cases[] = {
      {{.types = "\1\1"}, "tokenizer.ggml.token_type has 2 entries for 6 tokens"},
      {{.tokens = {"a", "b", "ab", "\xff", "c", "d"}}, "tokenizer.ggml.tokens holds text that is"},
      {{.merges = {"a b", "ab"}}, "tokenizer.ggml.merges: \"ab\" is not a pair"},
      {{.merges = {"a "}}, "\"a \" is not a pair"},
      {{.merges = {" a"}}, "\" a\" is not a pair"}};
  for (const Case& one : cases) {
    FakeGguf file;
    one.written.describe(file);
    support::expect_failure(read_gguf_tokenizer(file).status(), ErrorCode::kInvalidArgument,
                            {"m.gguf", one.named});
  }
}

TEST(GgufTokenizer, OtherModelsAndSplitsAreRefusedByName) {
  for (const WrittenTokenizer& other :
       {WrittenTokenizer{.model = "llama"}, WrittenTokenizer{.split = "qwen2"}}) {
    FakeGguf file;
    other.describe(file);
    support::expect_failure(
        read_gguf_tokenizer(file).status(), ErrorCode::kUnimplemented,
        {"m.gguf", "\"" + other.model + "\" with split \"" + other.split + "\""});
  }
}

TEST(GgufTokenizer, SeveralTemplatesHaveNames) {
  FakeGguf one, several;
  WrittenTokenizer{}.describe(one);
  one.set_text("tokenizer.chat_template", "T");
  EXPECT_EQ(tokenizer_of(one).config["chat_template"], "T");
  WrittenTokenizer{}.describe(several);
  several.set_text("tokenizer.chat_template", "T");
  several.set_texts("tokenizer.chat_templates", {"tool_use"});
  several.set_text("tokenizer.chat_template.tool_use", "U");
  EXPECT_EQ(json(tokenizer_of(several).config["chat_template"]),
            json::parse(R"([{"name": "default", "template": "T"},
                            {"name": "tool_use", "template": "U"}])"));
}

}  // namespace
}  // namespace rl
