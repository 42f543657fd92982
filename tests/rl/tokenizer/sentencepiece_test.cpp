// SentencePiece models made on the spot: what the fields do, and what damage says.
// tokenizer_reference_test compares trained ones with the library.
#include "rl/tokenizer/sentencepiece_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rl/tokenizer/charsmap.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/tokenizer/tokenizer_files.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using Ids = std::vector<std::int32_t>;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string number(unsigned field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string bytes(unsigned field, std::string_view value) {
  return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
}

std::string piece(std::string_view text, float score, unsigned type = 1) {
  std::string raw(4, '\0');
  std::memcpy(raw.data(), &score, 4);
  return bytes(1, bytes(1, text) + varint(2 << 3 | 5) + raw + (type == 1 ? "" : number(3, type)));
}

// <unk> <s> </s>, two byte tokens, then pieces.
std::string vocabulary() {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("<0xC3>", 0, 6) +
         piece("<0xA9>", 0, 6) + piece("\u2581", -5) + piece("a", -6) + piece("b", -7) +
         piece("ab", -1) + piece("\u2581a", -2) + piece("\u2581ab", -3) + piece("[x]", 0, 4);
}

std::string trainer(unsigned kind, bool byte_fallback) {
  return bytes(2, number(3, kind) + number(35, byte_fallback ? 1 : 0));
}
std::string normalizer(bool prefix, bool trim) {
  return bytes(3, number(3, prefix ? 1 : 0) + number(4, trim ? 1 : 0));
}

Tokenizer load_sentencepiece(const std::string& model) {
  auto pipeline = tokenizer_pipeline_from_sentencepiece(model, "m.model", {});
  EXPECT_TRUE(pipeline.ok()) << pipeline.status().to_string();
  return Tokenizer(std::shared_ptr<const TokenizerPipeline>(std::move(*pipeline)));
}

TEST(SentencePiece, MergesByScoreAndFallsBackToBytes) {
  const Tokenizer tokenizer =
      load_sentencepiece(vocabulary() + trainer(2, true) + normalizer(true, false));
  EXPECT_EQ(*tokenizer.encode("ab", true), (Ids{10}));
  EXPECT_EQ(*tokenizer.encode(" ab", true), (Ids{5, 10}));
  EXPECT_EQ(*tokenizer.encode("\u00e9a", true), (Ids{5, 3, 4, 6}));
  EXPECT_EQ(*tokenizer.encode("a[x]b<s>", true),
            (Ids{9, 11, 7, 0}));  // the control symbol is text: four unknown characters
  EXPECT_EQ(tokenizer.decode(Ids{1, 9, 10, 3, 4}, true), "a ab\u00e9");
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(1));
}

TEST(SentencePiece, UnigramTakesTheBestPath) {
  const Tokenizer tokenizer =
      load_sentencepiece(vocabulary() + trainer(1, false) + normalizer(true, true));
  EXPECT_EQ(*tokenizer.encode("  ab   a ", true), (Ids{10, 9}));
  EXPECT_EQ(*tokenizer.encode("zab", true), (Ids{5, 0, 8}));
  EXPECT_EQ(*tokenizer.encode("a[x]", true), (Ids{9, 11}));
  EXPECT_EQ(*tokenizer.encode("", true), (Ids{}));
  EXPECT_EQ(*tokenizer.encode("   ", true), (Ids{}));
}

struct Damage {
  const char* what;
  std::string model;
  ErrorCode code;
  const char* mentions;
};

TEST(SentencePiece, DamageNamesTheField) {
  const std::string whole = vocabulary() + trainer(2, true);
  const Damage damages[] = {
      {"empty", "", ErrorCode::kInvalidArgument, "not a SentencePiece model"},
      {"json", "{}", ErrorCode::kInvalidArgument, "not a SentencePiece model"},
      {"piece is a number", number(1, 3), ErrorCode::kInvalidArgument, "not a SentencePiece model"},
      {"later piece is a number", whole + number(1, 3), ErrorCode::kInvalidArgument,
       "pieces[12]: has wire type 0, not 2"},
      {"longer than the file", piece("<unk>", 0, 2) + varint(1 << 3 | 2) + varint(1ull << 60),
       ErrorCode::kInvalidArgument, "field 1 is longer"},
      {"cut in a tag", piece("<unk>", 0, 2) + "\xff", ErrorCode::kInvalidArgument, "tag"},
      {"field 0", piece("<unk>", 0, 2) + std::string(1, '\0'), ErrorCode::kInvalidArgument,
       "no valid number"},
      {"group", piece("<unk>", 0, 2) + varint(9 << 3 | 3), ErrorCode::kInvalidArgument,
       "field 9 has wire type 3"},
      {"score as number", bytes(1, bytes(1, "a") + number(2, 1)), ErrorCode::kInvalidArgument,
       "pieces[0]: score: has wire type 0, not 5"},
      {"score nan", piece("a", std::bit_cast<float>(0x7fc00000u)), ErrorCode::kInvalidArgument,
       "pieces[0]: score: not a finite number"},
      {"type", piece("a", 0, 9), ErrorCode::kInvalidArgument, "pieces[0]: type: 9"},
      {"no text", bytes(1, ""), ErrorCode::kInvalidArgument, "pieces[0]: piece: is missing"},
      {"not utf8", piece("\xff", 0), ErrorCode::kInvalidArgument, "pieces[0]: piece: not UTF-8"},
      {"twice", whole + piece("ab", 0), ErrorCode::kInvalidArgument,
       "pieces[8]: piece: \"ab\" is there twice"},
      {"unknown id", whole + bytes(2, number(40, 99)), ErrorCode::kInvalidArgument,
       "trainer_spec: unk_id: 99"},
      {"no unknown id", whole + bytes(2, number(40, ~0ull)), ErrorCode::kInvalidArgument,
       "trainer_spec: unk_id"},
      {"kind", whole + bytes(2, number(3, 7)), ErrorCode::kInvalidArgument,
       "trainer_spec: model_type: 7"},
      {"word", whole + trainer(3, false), ErrorCode::kUnimplemented, "model_type WORD"},
      {"unused", whole + piece("c", 0, 5), ErrorCode::kUnimplemented, "pieces[12]: unused"},
      {"charsmap short", whole + bytes(3, bytes(2, "abc")), ErrorCode::kInvalidArgument,
       "precompiled_charsmap: is too short"},
      {"charsmap lies", whole + bytes(3, bytes(2, std::string("\xfc\xff\xff\xff", 4) + "abcd")),
       ErrorCode::kInvalidArgument, "precompiled_charsmap: claims"},
      {"flag", whole + bytes(3, bytes(3, "x")), ErrorCode::kInvalidArgument,
       "normalizer_spec: add_dummy_prefix: has wire type 2"},
  };
  for (const Damage& damage : damages) {
    const auto status = tokenizer_pipeline_from_sentencepiece(damage.model, "m.model", {}).status();
    EXPECT_EQ(status.code(), damage.code) << damage.what << ": " << status.to_string();
    EXPECT_NE(status.message().find(damage.mentions), std::string::npos)
        << damage.what << ": " << status.message();
    EXPECT_TRUE(status.message().starts_with("m.model: ")) << status.message();
  }
}

// Every prefix of a model is an error or a smaller model, never a crash.
TEST(SentencePiece, CutAnywhere) {
  const std::string whole = vocabulary() + trainer(2, true) + normalizer(true, false);
  int loaded = 0;
  for (std::size_t size = 0; size < whole.size(); ++size)
    loaded += parse_sentencepiece_model(whole.substr(0, size)).ok() ? 1 : 0;
  EXPECT_LT(loaded, 20);
}

TEST(SentencePiece, UnknownFieldsAreSkipped) {
  const Tokenizer tokenizer = load_sentencepiece(
      vocabulary() + bytes(4, "self test") + number(200, 1) +
      bytes(2, number(3, 2) + number(10, 5) + bytes(45, "<unk>")) + normalizer(true, false));
  EXPECT_EQ(*tokenizer.encode("ab", false), (Ids{10}));
}

TEST(CharsMap, DamagedTablesMatchNothingOutside) {
  // A trie of one unit that points far away.
  std::string blob("\x04\x00\x00\x00\x00\xff\xff\xff", 8);
  auto map = CharsMap::parse(blob + std::string("x\0", 2));
  ASSERT_TRUE(map.ok()) << map.status().to_string();
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_FALSE(map->longest(std::string(3, static_cast<char>(byte))).has_value());
  EXPECT_FALSE(CharsMap::parse(blob + "\xff").ok());
}

// ChatGLM2 and 3: own ids behind the model's, and its own beginning of every text.
TEST(SentencePieceChatGlm, HasItsOwnTokens) {
  const std::filesystem::path layouts = STARLING_SOURCE_DIR "/tests/fixtures/tokenizer_layouts";
  for (const char* name : {"chatglm2", "chatglm3"}) {
    auto tokenizer = Tokenizer::load(layouts / name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
    const std::int32_t first = tokenizer->vocab_size() - 9;
    EXPECT_EQ(tokenizer->token_to_id("[MASK]"), first);
    EXPECT_EQ(tokenizer->token_to_id("<|observation|>"), first + 8);
    EXPECT_EQ(*tokenizer->encode("", true), (std::vector<std::int32_t>{first + 1, first + 3}));
    EXPECT_TRUE(tokenizer->encode("", false)->empty());
    EXPECT_EQ(tokenizer->eos_id(), 2);
    EXPECT_EQ(tokenizer->padding_id(), 0);  // <unk>
    EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
    EXPECT_EQ(tokenizer->special_token_texts().at("eos_token"), "</s>");
    EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{1, first + 6, 2}, false),
              "<|user|>");  // begin and end are nothing in a text
    EXPECT_TRUE(tokenizer->decode_checked(std::vector<std::int32_t>{2}, false).ok());
    const bool found = tokenizer->encode("<|user|>", false)->size() == 1;
    EXPECT_EQ(found, name == std::string("chatglm3")) << "only where the folder lists them";
  }
}

TEST(SentencePieceChatGlm, TokensAreFoundOnRequestAndStandWhereTheClassHasThem) {
  const std::filesystem::path source =
      STARLING_SOURCE_DIR "/tests/fixtures/tokenizer_layouts/chatglm2";
  std::string pattern =
      (std::filesystem::temp_directory_path() / "starling_chatglm_XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  std::filesystem::copy(source / "tokenizer.model", folder / "tokenizer.model");
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"tokenizer_class": "ChatGLMTokenizer", "encode_special_tokens": true})";
  auto asked = Tokenizer::load(folder);
  ASSERT_TRUE(asked.ok()) << asked.status().to_string();
  EXPECT_EQ(asked->encode("sop[MASK]", false)->size(), 2u);
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"tokenizer_class": "ChatGLMTokenizer", "added_tokens_decoder": {"702": {"content": "[gMASK]"}}})";
  auto status = Tokenizer::load(folder).status();
  EXPECT_EQ(status.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("[gMASK]"), std::string::npos) << status.message();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rl
