// Rarely used settings, compared with the tokenizers wheel;
// tests/fixtures/tokenizer_corners/make.py records what it gives.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/tokenizer.h"
#include "tokenizer_fixtures.h"

namespace rl {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

json reference() {
  return json::parse(
      testing::file_text(STARLING_SOURCE_DIR "/tests/fixtures/tokenizer_corners/reference.json"));
}

void compare(const Tokenizer& tokenizer, const json& item) {
  for (const json& row : item.at("rows")) {
    const auto text = row[0].get<std::string>();
    EncodeOptions options;
    options.offsets = OffsetUnit::kCharacters;
    auto encoding = tokenizer.encode_with(text, options);
    ASSERT_TRUE(encoding.ok()) << encoding.status().to_string();
    std::vector<std::uint32_t> offsets;
    for (const TokenOffsets& one : encoding->offsets)
      offsets.insert(offsets.end(), {one.begin, one.end});
    EXPECT_EQ(encoding->ids, row[1].get<Ids>()) << row[0];
    EXPECT_EQ(*tokenizer.encode(text, true), row[1].get<Ids>()) << row[0];
    EXPECT_EQ(offsets, row[2].get<std::vector<std::uint32_t>>()) << row[0];
  }
  for (const json& row : item.at("decoded")) {
    EXPECT_EQ(tokenizer.decode(row[0].get<Ids>(), /*skip_special_tokens=*/false),
              row[1].get<std::string>())
        << row[0];
    EXPECT_TRUE(tokenizer.decode_checked(row[0].get<Ids>(), false).ok());
  }
}

TEST(TokenizerCorners, EqualTheWheels) {
  int compared = 0;
  for (const json& item : reference()) {
    SCOPED_TRACE(item.at("name").get<std::string>());
    auto tokenizer = Tokenizer::from_json(item.at("tokenizer").dump(), "t.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
    compare(*tokenizer, item);
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

// Where the wheel panics, and where it keeps a special token that it was asked to leave out. (The
// token's normalized form is not in its list of special ones.) Here neither happens.
TEST(TokenizerCorners, BetterThanTheWheel) {
  json j = reference().at(0).at("tokenizer");
  j["added_tokens"] = json::parse(
      R"([{"id": 300, "content": "<r>", "rstrip": true, "normalized": false}, {"id": 301, "content": "\n\n", "lstrip": true, "normalized": false}])");
  j["post_processor"] = nullptr;
  auto spaces = Tokenizer::from_json(j.dump(), "t.json");
  ASSERT_TRUE(spaces.ok()) << spaces.status().to_string();
  EXPECT_EQ(*spaces->encode("<r>\n\n\n", true), (Ids{300}));
  j["normalizer"] = {{"type", "Lowercase"}};
  j["added_tokens"] =
      json::parse(R"([{"id": 300, "content": "<S>", "special": true, "normalized": true}])");
  auto special = Tokenizer::from_json(j.dump(), "t.json");
  ASSERT_TRUE(special.ok()) << special.status().to_string();
  EXPECT_EQ(special->decode(Ids{300}, true), "");
  EXPECT_EQ(special->decode(Ids{300}, false), "<s>");
}

TEST(TokenizerCorners, WhatPatternsCannotSayIsNamed) {
  json j = reference().at(0).at("tokenizer");
  for (const char* pattern : {"[[:graph:]]", "[[:^punct:]]"}) {
    j["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", ""}};
    auto status = Tokenizer::from_json(j.dump(), "t.json").status();
    EXPECT_EQ(status.code(), runtime::ErrorCode::kUnimplemented) << pattern;
    EXPECT_NE(status.message().find("is not supported"), std::string::npos) << status.message();
  }
  j["normalizer"] = nullptr;
  j["pre_tokenizer"] = {{"type", "FixedLength"}, {"length", 0}};
  EXPECT_EQ(Tokenizer::from_json(j.dump(), "t.json").status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
