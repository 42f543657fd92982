// Offsets, truncation and padding, compared with the tokenizers wheel;
// tests/fixtures/tokenizer_offsets/make.py records what it gives.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/tokenizer.h"
#include "rl/tokenizer/tokenizer_files.h"
#include "rl/tokenizer/unicode_text.h"
#include "tokenizer_fixtures.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;
using Ids = std::vector<std::int32_t>;

std::string source(const std::string& name) {
  return testing::file_text(std::string(STARLING_SOURCE_DIR "/tests/fixtures/tokenizers/") + name +
                            "/tokenizer.json");
}

json offsets_reference() {
  return json::parse(
      testing::file_text(STARLING_SOURCE_DIR "/tests/fixtures/tokenizer_offsets/reference.json"));
}

Tokenizer load_for_offsets(const json& j) {
  auto tokenizer = Tokenizer::from_json(j.dump(), "t.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  return std::move(tokenizer.value());
}

std::vector<std::uint32_t> flat(const std::vector<TokenOffsets>& offsets) {
  std::vector<std::uint32_t> numbers;
  for (const TokenOffsets& one : offsets) numbers.insert(numbers.end(), {one.begin, one.end});
  return numbers;
}

TEST(TokenizerOffsets, EqualTheWheels) {
  const json all = offsets_reference();
  int compared = 0;
  for (const json& item : all.at("cases")) {
    json tokenizer_json = json::parse(source(item.at("tokenizer")));
    for (const auto& [key, value] : item.at("replace").items()) tokenizer_json[key] = value;
    const Tokenizer tokenizer = load_for_offsets(tokenizer_json);
    const std::string what =
        item.at("tokenizer").get<std::string>() + " " + item.at("replace").dump().substr(0, 300);
    for (std::size_t i = 0; i < item.at("rows").size(); ++i) {
      const auto text = all.at("texts")[i].get<std::string>();
      EncodeOptions options;
      options.offsets = OffsetUnit::kCharacters;
      auto encoding = tokenizer.encode_with(text, options);
      ASSERT_TRUE(encoding.ok()) << encoding.status().to_string();
      EXPECT_EQ(encoding->ids, item.at("rows")[i][0].get<Ids>())
          << what << ": " << all.at("texts")[i];
      EXPECT_EQ(*tokenizer.encode(text, true), encoding->ids) << what << ": " << all.at("texts")[i];
      EXPECT_EQ(flat(encoding->offsets), item.at("rows")[i][1].get<std::vector<std::uint32_t>>())
          << what << ": " << all.at("texts")[i];
      // In bytes they lie between characters, and say the same.
      options.offsets = OffsetUnit::kBytes;
      auto in_bytes = tokenizer.encode_with(text, options);
      for (const TokenOffsets& one : in_bytes->offsets) {
        EXPECT_LE(one.begin, one.end);
        EXPECT_FALSE(invalid_utf8_at(text.substr(one.begin, one.end - one.begin)).has_value());
      }
      offsets_to_characters(text, in_bytes->offsets);
      EXPECT_EQ(in_bytes->offsets, encoding->offsets) << what << ": " << all.at("texts")[i];
      ++compared;
    }
  }
  EXPECT_GT(compared, 500);
}

// With </s> (id 2) to fill up with, as in the reference.
Tokenizer padded_with_2(json tokenizer_json) {
  auto pipeline = tokenizer_pipeline_from_json(tokenizer_json.dump(), "t.json");
  EXPECT_TRUE(pipeline.ok()) << pipeline.status().to_string();
  (*pipeline)->pad_id = 2;
  return Tokenizer(std::shared_ptr<const TokenizerPipeline>(std::move(*pipeline)));
}

TEST(TokenizerBatch, TruncationAndPaddingEqualTheWheels) {
  const json batches = offsets_reference().at("batches");
  std::vector<std::string> texts = batches.at("texts");
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  for (const json& item : batches.at("cases")) {
    const Tokenizer tokenizer = padded_with_2(json::parse(source(item.at("tokenizer"))));
    EncodeOptions options;
    options.offsets = OffsetUnit::kCharacters;
    options.tokens_max = item.at("truncation").at("max_length");
    options.truncation_side =
        item.at("truncation").value("direction", "right") == "left" ? Side::kLeft : Side::kRight;
    Padding padding;
    if (const json& wanted = item.at("padding"); !wanted.is_null()) {
      padding.target =
          wanted.contains("length") ? Padding::Target::kFixed : Padding::Target::kLongest;
      padding.length = wanted.value("length", 0);
      padding.multiple_of = wanted.value("pad_to_multiple_of", 0);
      padding.side = wanted.value("direction", "right") == "left" ? Side::kLeft : Side::kRight;
    }
    for (std::size_t threads : {1, 3}) {
      auto encodings = tokenizer.encode_batch(views, options, padding, threads);
      ASSERT_TRUE(encodings.ok()) << encodings.status().to_string();
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const Encoding& encoding = (*encodings)[i];
        const json& row = item.at("rows")[i];
        const std::string what = item.at("tokenizer").get<std::string>() +
                                 item.at("truncation").dump() + item.at("padding").dump() +
                                 texts[i];
        EXPECT_EQ(encoding.ids, row[0].get<Ids>()) << what;
        EXPECT_EQ(encoding.attention_mask, row[1].get<std::vector<std::uint8_t>>()) << what;
        EXPECT_EQ(encoding.special_mask, row[2].get<std::vector<std::uint8_t>>()) << what;
        EXPECT_EQ(flat(encoding.offsets), row[3].get<std::vector<std::uint32_t>>()) << what;
      }
    }
  }
}

TEST(TokenizerBatch, WhatCannotBeDoneIsSaid) {
  const json plain = json::parse(source("llama2_bytefallback"));
  const Tokenizer tokenizer = load_for_offsets(plain);
  const std::vector<std::string_view> texts = {"a", "b\xff", "c\xff"};
  EXPECT_EQ(tokenizer.encode_batch(texts, {}, {}, 2).status().message().substr(0, 7), "text 1:");
  Padding padding;
  padding.target = Padding::Target::kLongest;
  auto status = tokenizer.encode_batch(std::span(texts).first(1), {}, padding).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("neither a padding nor an end-of-sequence token"),
            std::string::npos);
  EXPECT_EQ(padded_with_2(plain).padding_id(), 2);
  auto pipeline = tokenizer_pipeline_from_json(plain.dump(), "t.json");
  (*pipeline)->eos_id = 1;  // stands in where there is no padding token
  EXPECT_EQ(Tokenizer(std::shared_ptr<const TokenizerPipeline>(std::move(*pipeline))).padding_id(),
            1);
  EncodeOptions options;
  options.tokens_max = 1;  // <s> alone
  EXPECT_EQ(tokenizer.encode_with("a", options)->ids, (Ids{1}));
  json two = plain;
  two["post_processor"] =
      json::parse(R"({"type": "BertProcessing", "cls": ["<s>", 1], "sep": ["</s>", 2]})");
  EXPECT_EQ(load_for_offsets(two).encode_with("a", options).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(tokenizer.encode_with("a", {})->offsets.empty());
}

}  // namespace
}  // namespace rl
