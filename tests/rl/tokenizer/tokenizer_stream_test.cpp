#include <gtest/gtest.h>

#include <random>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {
namespace {

using nlohmann::json;

// Every byte is a token: id 2 + byte. The decoder says how they are spelled.
Tokenizer byte_tokenizer(bool byte_level) {
  json j;
  json& vocab = j["model"]["vocab"];
  vocab["<s>"] = 0;
  vocab["<unk>"] = 1;
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    if (byte_level) {
      append_utf8(byte_to_character(static_cast<std::uint8_t>(byte)), token);
    } else {
      token = byte_token(static_cast<std::uint8_t>(byte));
    }
    vocab[token] = 2 + byte;
  }
  j["model"]["type"] = "BPE";
  j["model"]["merges"] = json::array();
  j["added_tokens"] = json::parse(R"([{"id": 0, "content": "<s>", "special": true}])");
  j["decoder"] = json::parse(
      byte_level
          ? R"({"type": "ByteLevel"})"
          : R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})");
  auto tokenizer = Tokenizer::from_json(j.dump(), "t.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  return std::move(tokenizer.value());
}

std::vector<std::int32_t> ids_of(std::string_view bytes) {
  std::vector<std::int32_t> ids;
  for (char c : bytes) ids.push_back(2 + static_cast<unsigned char>(c));
  return ids;
}

constexpr const char* kText =
    "na\u00efve \u4f60\u597d \U0001f600\U0001f468\u200d\U0001f469 end \ufffd!";

TEST(TokenStream, HoldsBackAnUnfinishedCharacter) {
  for (bool byte_level : {true, false}) {
    const Tokenizer tokenizer = byte_tokenizer(byte_level);
    TokenStream stream(tokenizer, true);
    std::string whole;
    for (std::int32_t id : ids_of(kText)) {
      const std::string part = stream.push(id);
      EXPECT_FALSE(invalid_utf8_at(part).has_value());
      whole += part;
      // Nothing but text that is already right is ever given out.
      EXPECT_EQ(std::string(kText).rfind(whole, 0), 0u) << byte_level << " " << whole;
    }
    whole += stream.finish();
    EXPECT_EQ(whole, kText) << byte_level;
  }
}

TEST(TokenStream, EachCharacterComesWithItsLastByte) {
  const Tokenizer tokenizer = byte_tokenizer(true);
  TokenStream stream(tokenizer, true);
  EXPECT_EQ(stream.push(2 + 0xf0), "");
  EXPECT_EQ(stream.push(2 + 0x9f), "");
  EXPECT_EQ(stream.push(2 + 0x98), "");
  EXPECT_EQ(stream.push(2 + 0x80), "\U0001f600");
  EXPECT_EQ(stream.push(0), "");     // special, skipped
  EXPECT_EQ(stream.push(9999), "");  // unknown
  EXPECT_EQ(stream.push(2 + 0xe4), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
  EXPECT_EQ(stream.push(2 + 'a'), "a");  // as new
}

// Any bytes at all: the parts are UTF-8, and joined they are what decode gives.
TEST(TokenStream, JoinedPartsEqualDecode) {
  const Tokenizer tokenizer = byte_tokenizer(true);
  std::mt19937 rng(3);
  const std::string text = kText;
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (int i = 0; i < 20; ++i) {
      bytes += rng() % 3 == 0 ? static_cast<char>(rng()) : text[rng() % text.size()];
    }
    const auto ids = ids_of(bytes);
    TokenStream stream(tokenizer, true);
    std::string whole;
    for (std::int32_t id : ids) {
      const std::string part = stream.push(id);
      ASSERT_FALSE(invalid_utf8_at(part).has_value());
      whole += part;
    }
    whole += stream.finish();
    ASSERT_EQ(whole, tokenizer.decode(ids, true));
  }
}

// With byte fallback damaged bytes still give UTF-8, and never stall the stream.
TEST(TokenStream, DamagedFallbackBytesDoNotStall) {
  const Tokenizer tokenizer = byte_tokenizer(false);
  TokenStream stream(tokenizer, true);
  std::string whole;
  for (int i = 0; i < 50; ++i) whole += stream.push(2 + 0x9f);
  EXPECT_FALSE(whole.empty());
  for (std::int32_t id : ids_of("and then it is fine now")) whole += stream.push(id);
  whole += stream.finish();
  EXPECT_FALSE(invalid_utf8_at(whole).has_value());
  EXPECT_TRUE(whole.ends_with(" is fine now")) << whole;
}

}  // namespace
}  // namespace rl
