// Files next to a tokenizer.json, and GGUF vocabularies made on the spot.
#include "rl/tokenizer/tokenizer_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "rl/template/chat_templates.h"
#include "rl/tokenizer/tokenizer.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using Ids = std::vector<std::int32_t>;
namespace fs = std::filesystem;

constexpr const char* kTokenizer =
    R"({"added_tokens": [{"id": 1, "content": "<s>", "special": true}],
  "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "<s>": 1, "hi": 2}}})";

class TokenizerFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "starling_tokenizer_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write("tokenizer.json", kTokenizer);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  fs::path folder_;
};

TEST_F(TokenizerFolder, NeedsNoFileButTheTokenizer) {
  auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
  EXPECT_TRUE(tokenizer->chat_template_source().empty());
  EXPECT_TRUE(tokenizer->special_token_texts().empty());
  EXPECT_TRUE(Tokenizer::load(folder_ / "tokenizer.json").ok());
}

TEST_F(TokenizerFolder, SpecialTokensComeFromTheMapThenTheConfig) {
  write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<s>", "lstrip": false}, "pad_token": null, "unk_token": "u"})");
  write("special_tokens_map.json", R"({"eos_token": "<s>", "unk_token": "hi", "pad_token": "hi"})");
  auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 1);
  EXPECT_EQ(tokenizer->pad_id(), 2);
  EXPECT_EQ(tokenizer->special_token_texts().at("bos_token"), "<s>");
  EXPECT_EQ(tokenizer->special_token_texts().at("unk_token"), "hi");
  // With an added_tokens_decoder the config is whole, and the map counts no more.
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "unk_token": "u", "added_tokens_decoder": {}})");
  tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(tokenizer->special_token_texts().at("unk_token"), "u");
  EXPECT_EQ(tokenizer->eos_id(), std::nullopt);
}

TEST_F(TokenizerFolder, ChatTemplateFromEachPlace) {
  write("chat_template.json", R"({"chat_template": "separate"})");
  EXPECT_EQ(Tokenizer::load(folder_)->chat_template_source(), "separate");
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "list"}]})");
  EXPECT_EQ(Tokenizer::load(folder_)->chat_template_source(), "list");
  write("tokenizer_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(Tokenizer::load(folder_)->chat_template_source(), "config");
  write("chat_template.jinja", "own file");
  EXPECT_EQ(Tokenizer::load(folder_)->chat_template_source(), "own file");
}

using Templates = std::map<std::string, std::string>;

TEST_F(TokenizerFolder, ChatTemplatesByName) {
  const auto templates = [&] { return Tokenizer::load(folder_)->chat_templates(); };
  EXPECT_EQ(templates(), Templates{});
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "rag", "template": "r"}]})");
  EXPECT_EQ(templates(), (Templates{{"rag", "r"}, {"tool_use", "t"}}));
  write("tokenizer_config.json", R"({"chat_template": {"default": "d", "tool_use": "t"}})");
  EXPECT_EQ(templates(), (Templates{{"default", "d"}, {"tool_use", "t"}}));
  // Separate files go before the config's.
  fs::create_directory(folder_ / "additional_chat_templates");
  write("additional_chat_templates/tool_use.jinja", "file");
  write("additional_chat_templates/notes.txt", "no template");
  EXPECT_EQ(templates(), (Templates{{"default", "d"}, {"tool_use", "file"}}));
  write("chat_template.jinja", "own");
  EXPECT_EQ(templates(), (Templates{{"default", "own"}, {"tool_use", "file"}}));
  fs::remove(folder_ / "chat_template.jinja");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  EXPECT_NE(Tokenizer::load(folder_).status().message().find("tokenizer_config.json"),
            std::string::npos);
}

TEST(ChatTemplates, ToolsChooseTheOneForThem) {
  const auto all = ChatTemplates::parse(Templates{{"default", "D"}, {"tool_use", "T"}});
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_EQ(*all->render({{"tools", nullptr}}), "D");
  EXPECT_EQ(*all->render(nlohmann::ordered_json::object()), "D");
  EXPECT_EQ(*all->render({{"tools", nlohmann::ordered_json::array()}}), "T");
  EXPECT_EQ(*all->render_for(true, {{"tools", nullptr}}), "T");
  const auto tools_only = ChatTemplates::parse(Templates{{"rag", "R"}, {"tool_use", "T"}});
  EXPECT_EQ(*tools_only->render({{"tools", nlohmann::ordered_json::array()}}), "T");
  const auto none = tools_only->render({{"tools", nullptr}}).status();
  EXPECT_EQ(none.code(), ErrorCode::kNotFound);
  EXPECT_NE(none.message().find("(rag, tool_use)"), std::string::npos) << none.message();
  EXPECT_EQ(*ChatTemplates::parse("one")->render({{"tools", 1}}), "one");
  EXPECT_NE(ChatTemplates::parse(Templates{{"default", "D"}, {"rag", "{{"}})
                .status()
                .message()
                .find("the one named rag"),
            std::string::npos);
}

TEST_F(TokenizerFolder, DamageNamesTheFile) {
  write("tokenizer_config.json", "{");
  auto status = Tokenizer::load(folder_).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("tokenizer_config.json"), std::string::npos);
  write("tokenizer_config.json", R"({"chat_template": 3})");
  EXPECT_EQ(Tokenizer::load(folder_).status().code(), ErrorCode::kInvalidArgument);
  fs::remove(folder_ / "tokenizer.json");
  status = Tokenizer::load(folder_).status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.message().find("holds no tokenizer.json"), std::string::npos);
  EXPECT_EQ(Tokenizer::load("/no/such/file").status().code(), ErrorCode::kNotFound);
}

// ---- vocab.json and merges.txt ----

class VocabAndMerges : public TokenizerFolder {
 protected:
  void SetUp() override {
    TokenizerFolder::SetUp();
    fs::remove(folder_ / "tokenizer.json");
    write("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "#": 4, "##": 5})");
    write("merges.txt", "#version: 0.2\na b\n# #\n");
  }
  runtime::Status refusal() { return Tokenizer::load(folder_).status(); }
  void expect_refusal(ErrorCode code, std::string_view mentions) {
    const runtime::Status status = refusal();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(mentions), std::string::npos) << status.message();
  }
};

TEST_F(VocabAndMerges, Gpt2IsTakenForGranted) {
  auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(*tokenizer->encode("ab##<|endoftext|>", true),
            (Ids{2, 5, 6}));  // the class's end of text gets the next id
  EXPECT_EQ(tokenizer->eos_id(), 6);
  EXPECT_EQ(tokenizer->bos_id(), 6);
  EXPECT_EQ(tokenizer->pad_id(), std::nullopt);
}

TEST_F(VocabAndMerges, TheFilesNextToThemSayWhatIsAdded) {
  write("added_tokens.json", R"({"[B]": 7, "[A]": 6})");
  write(
      "tokenizer_config.json",
      R"({"tokenizer_class": "GPT2TokenizerFast", "bos_token": "[A]", "eos_token": "##", "unk_token": null, "add_bos_token": true, "add_eos_token": true})");
  auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(*tokenizer->encode("ab[B][A]", true), (Ids{6, 2, 7, 6, 5}));
  EXPECT_TRUE(tokenizer->is_special(6));
  EXPECT_FALSE(tokenizer->is_special(7));
  EXPECT_FALSE(tokenizer->special_token_texts().contains("unk_token"));
}

TEST_F(VocabAndMerges, DamageNamesTheFile) {
  write("merges.txt", "#version: 0.2\na b\nab\n");
  expect_refusal(ErrorCode::kInvalidArgument, "merges.txt: line 3 is not a pair of tokens");
  write("merges.txt", "a b c\n");
  expect_refusal(ErrorCode::kInvalidArgument, "merges.txt: line 1");
  write("merges.txt", "b a\n");
  expect_refusal(ErrorCode::kInvalidArgument, "\"ba\"");
  write("merges.txt", "a \xff\n");
  expect_refusal(ErrorCode::kInvalidArgument, "merges.txt: not UTF-8 at byte 2");
  write("merges.txt", "a b\n");
  write("added_tokens.json", R"({"x": 2})");
  expect_refusal(ErrorCode::kInvalidArgument,
                 "added_tokens.json: added token \"x\" has id 2, which is \"ab\"");
  write("added_tokens.json", R"({"x": 9, "y": 9})");
  EXPECT_FALSE(Tokenizer::load(folder_).ok());
  write("added_tokens.json", "{}");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"-1": "x"}})");
  expect_refusal(ErrorCode::kInvalidArgument, "added_tokens_decoder: \"-1\"");
  write("tokenizer_config.json", R"({"add_bos_token": 3})");
  expect_refusal(ErrorCode::kInvalidArgument, "add_bos_token");
  write("tokenizer_config.json", "{}");
  write("vocab.json", R"({"a": "b"})");
  expect_refusal(ErrorCode::kInvalidArgument, "vocab.json");
  fs::remove(folder_ / "vocab.json");
  expect_refusal(ErrorCode::kNotFound, "vocab.json");
}

TEST_F(VocabAndMerges, OtherClassesAreRefusedByName) {
  write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  expect_refusal(ErrorCode::kUnimplemented, "RobertaTokenizer");
  write("tokenizer_config.json", "{}");
  write("config.json", R"({"model_type": "bart"})");
  expect_refusal(ErrorCode::kUnimplemented, "bart");
}

// ---- GGUF ----

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::string text(std::string_view value) {
  return raw(static_cast<std::uint64_t>(value.size())) + std::string(value);
}

struct GgufBuilder {
  std::string entries;
  std::uint64_t count = 0;

  GgufBuilder& add(std::string_view key, GgufType type, const std::string& value) {
    entries += text(key) + raw(static_cast<std::uint32_t>(type)) + value;
    ++count;
    return *this;
  }
  GgufBuilder& string(std::string_view key, std::string_view value) {
    return add(key, GgufType::kString, text(value));
  }
  GgufBuilder& u32(std::string_view key, std::uint32_t value) {
    return add(key, GgufType::kU32, raw(value));
  }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = raw(static_cast<std::uint32_t>(GgufType::kString)) +
                        raw(static_cast<std::uint64_t>(values.size()));
    for (const auto& value : values) bytes += text(value);
    return add(key, GgufType::kArray, bytes);
  }
  template <class T>
  GgufBuilder& numbers(std::string_view key, GgufType type, const std::vector<T>& values) {
    std::string bytes =
        raw(static_cast<std::uint32_t>(type)) + raw(static_cast<std::uint64_t>(values.size()));
    for (T value : values) bytes += raw(value);
    return add(key, GgufType::kArray, bytes);
  }

  // The file is gone when this returns: a tokenizer keeps nothing of it.
  runtime::Result<Tokenizer> load() const {
    const std::string bytes = "GGUF" + raw(3u) + raw(std::uint64_t{0}) + raw(count) + entries;
    auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), "m.gguf");
    if (!file.ok()) return file.status();
    auto pipeline = tokenizer_pipeline_from_gguf(**file);
    if (!pipeline.ok()) return pipeline.status();
    return Tokenizer(std::shared_ptr<const TokenizerPipeline>(std::move(*pipeline)));
  }
};

GgufBuilder sentencepiece() {
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "llama")
      .strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\u2581", "a",
                                         "b", "ab", "\u2581a", "\u2581ab"})
      .numbers<float>("tokenizer.ggml.scores", GgufType::kF32,
                      {0, 0, 0, 0, 0, -5, -6, -7, -1, -2, -3})
      .numbers<std::int32_t>("tokenizer.ggml.token_type", GgufType::kI32,
                             {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1})
      .u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.unknown_token_id", 0);
  return builder;
}

TEST(TokenizerGguf, SentencePieceMergesByScore) {
  auto builder = sentencepiece();
  auto tokenizer = builder.load();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(*tokenizer->encode("ab", true),
            (Ids{1, 10}));  // a+b scores -1, then the space mark with that
  EXPECT_EQ(*tokenizer->encode("a ab", true), (Ids{1, 9, 10}));
  EXPECT_EQ(*tokenizer->encode("\u00e9", true), (Ids{1, 5, 3, 4}));   // its bytes
  EXPECT_EQ(*tokenizer->encode("\u00e8a", true), (Ids{1, 5, 0, 6}));  // 0xA8 is no token: unknown
  EXPECT_EQ(tokenizer->decode(Ids{1, 9, 10, 3, 4}, true), "a ab\u00e9");
  EXPECT_EQ(*tokenizer->encode("<s>ab", false), (Ids{1, 10}));
}

TEST(TokenizerGguf, FlagsDecideWhatIsAdded) {
  auto builder = sentencepiece();
  builder.add("tokenizer.ggml.add_bos_token", GgufType::kBool, std::string(1, '\0'))
      .add("tokenizer.ggml.add_eos_token", GgufType::kBool, "\x01")
      .add("tokenizer.ggml.add_space_prefix", GgufType::kBool, std::string(1, '\0'))
      .string("tokenizer.chat_template", "T");
  auto tokenizer = builder.load();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(*tokenizer->encode("ab", true), (Ids{8, 2}));
  EXPECT_EQ(tokenizer->decode(Ids{8}, true), "ab");
  EXPECT_EQ(tokenizer->chat_template_source(), "T");
  EXPECT_EQ(tokenizer->special_token_texts().at("eos_token"), "</s>");
}

TEST(TokenizerGguf, ChatTemplatesByName) {
  auto builder = sentencepiece();
  builder.strings("tokenizer.chat_templates", {"default", "tool_use"})
      .string("tokenizer.chat_template", "D")
      .string("tokenizer.chat_template.tool_use", "T");
  EXPECT_EQ(builder.load()->chat_templates(), (Templates{{"default", "D"}, {"tool_use", "T"}}));
  auto named = sentencepiece();
  named.strings("tokenizer.chat_templates", {"tool_use"})
      .string("tokenizer.chat_template", "D")
      .string("tokenizer.chat_template.tool_use", "T");
  const auto tokenizer = named.load();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(tokenizer->chat_templates(), (Templates{{"default", "D"}, {"tool_use", "T"}}));
}

GgufBuilder byte_level(std::string_view pre) {
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", pre)
      .strings("tokenizer.ggml.tokens", {"a", "b", "\u0120", "1", "ab", "11"})
      .strings("tokenizer.ggml.merges", {"a b", "1 1"});
  return builder;
}

TEST(TokenizerGguf, ThePreTokenizerIsWhatItsNameSays) {
  auto gpt2 = byte_level("gpt-2");
  EXPECT_EQ(*gpt2.load()->encode("ab11", false), (Ids{4, 5}));
  auto single_digits = byte_level("starcoder");
  EXPECT_EQ(*single_digits.load()->encode("ab11", false), (Ids{4, 3, 3}));
  auto llama3 = byte_level("llama-bpe");
  EXPECT_EQ(*llama3.load()->encode("ab1111", false), (Ids{4, 5, 3, 3}));  // three digits, then one
  for (const char* name : {"qwen2", "tekken", "gpt-4o", "deepseek-v3", "smollm"}) {
    auto builder = byte_level(name);
    EXPECT_TRUE(builder.load().ok()) << name;
  }
  auto unknown = byte_level("brand-new");
  auto status = unknown.load().status();
  EXPECT_EQ(status.code(), ErrorCode::kUnimplemented);
  EXPECT_NE(status.message().find("brand-new"), std::string::npos);
}

TEST(TokenizerGguf, DamageNamesTheKey) {
  const auto message = [](const GgufBuilder& builder) { return builder.load().status().message(); };
  EXPECT_NE(message(GgufBuilder()).find("tokenizer.ggml.model"), std::string::npos);
  EXPECT_NE(
      message(
          GgufBuilder().string("tokenizer.ggml.model", "bert").strings("tokenizer.ggml.tokens", {}))
          .find("bert"),
      std::string::npos);
  EXPECT_NE(
      message(GgufBuilder().string("tokenizer.ggml.model", "gpt2")).find("tokenizer.ggml.tokens"),
      std::string::npos);
  auto bad_utf8 = GgufBuilder()
                      .string("tokenizer.ggml.model", "gpt2")
                      .strings("tokenizer.ggml.tokens", {"a", "\xff"});
  EXPECT_NE(message(bad_utf8).find("tokens[1]"), std::string::npos);
  auto bad_id = sentencepiece().u32("tokenizer.ggml.padding_token_id", 4000);
  EXPECT_NE(message(bad_id).find("padding_token_id"), std::string::npos);
  auto bad_merge = byte_level("gpt-2");
  bad_merge.entries.clear();
  bad_merge.count = 0;
  bad_merge.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "gpt-2");
  bad_merge.strings("tokenizer.ggml.tokens", {"a"}).strings("tokenizer.ggml.merges", {"a z"});
  EXPECT_NE(message(bad_merge).find("\"z\""), std::string::npos);
}

}  // namespace
}  // namespace rl
