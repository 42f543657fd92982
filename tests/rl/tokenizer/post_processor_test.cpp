#include "rl/tokenizer/post_processor.h"

#include <gtest/gtest.h>

#include <cstdint>
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
using Ids = std::vector<std::int32_t>;

// "$A" is the place of the text, as the library writes it; "x" and "y" are special tokens.
Json template_of(const std::vector<std::string>& places) {
  Json component = Json::parse(R"({"type": "TemplateProcessing", "single": [],
    "special_tokens": {"x": {"id": "x", "ids": [5, 6]}, "y": {"id": "y", "ids": [7]}}})");
  for (const std::string& place : places) {
    const bool is_text = place == "$A";
    Json piece;
    piece[is_text ? "Sequence" : "SpecialToken"] = {{"id", is_text ? "A" : place}, {"type_id", 0}};
    component["single"].push_back(std::move(piece));
  }
  return component;
}

Json cls_and_sep(const std::string& type) {
  return Json::parse(R"({"cls": ["[CLS]", 8], "sep": ["[SEP]", 9], "type": ")" + type + "\"}");
}

Json byte_level_trimming(bool trim, bool add_prefix_space) {
  return {{"type", "ByteLevel"}, {"trim_offsets", trim}, {"add_prefix_space", add_prefix_space}};
}

Json processors(std::vector<Json> parts) {
  return {{"type", "Sequence"}, {"processors", Json(std::move(parts))}};
}

PostProcessor processor_of(const Json& component) {
  auto made = post_processor_from_json(component);
  EXPECT_TRUE(made.ok()) << component << ": " << made.status().to_string();
  return made.value_or({});
}

TEST(PostProcessor, ATemplatesTokensStandWhereItPutsThem) {
  const PostProcessor made = processor_of(template_of({"y", "x", "$A", "y"}));
  EXPECT_EQ(made.prefix, (Ids{7, 5, 6})) << "one special token may have several ids";
  EXPECT_EQ(made.suffix, (Ids{7}));
  EXPECT_FALSE(made.trim_offsets);
}

TEST(PostProcessor, ALaterProcessorGoesAroundAnEarlierOne) {
  const PostProcessor made =
      processor_of(processors({cls_and_sep("BertProcessing"), template_of({"y", "x", "$A", "y"})}));
  EXPECT_EQ(made.prefix, (Ids{7, 5, 6, 8}));
  EXPECT_EQ(made.suffix, (Ids{9, 7}));
}

TEST(PostProcessor, ByteLevelAndRobertaTrimOffsetsUnlessTheySayOtherwise) {
  const PostProcessor roberta = processor_of(cls_and_sep("RobertaProcessing"));
  EXPECT_TRUE(roberta.trim_offsets);
  EXPECT_TRUE(roberta.add_prefix_space);
  EXPECT_EQ(roberta.prefix, (Ids{8}));
  EXPECT_EQ(roberta.suffix, (Ids{9}));
  EXPECT_FALSE(processor_of(cls_and_sep("BertProcessing")).trim_offsets);
  EXPECT_FALSE(processor_of(byte_level_trimming(false, true)).trim_offsets);
  // Llama 3's sequence.
  const PostProcessor both =
      processor_of(processors({byte_level_trimming(true, false), template_of({"y", "$A"})}));
  EXPECT_TRUE(both.trim_offsets);
  EXPECT_FALSE(both.add_prefix_space);
}

TEST(PostProcessor, ATemplateHasTheTextOnceAndDefinedTokens) {
  const auto expect = [](const std::vector<std::string>& places, const std::string& mentions) {
    expect_failure(post_processor_from_json(template_of(places)).status(),
                   ErrorCode::kInvalidArgument, {mentions});
  };
  expect({"y"}, "one Sequence, not 0");
  expect({"$A", "y", "$A"}, "one Sequence, not 2");
  expect({"$A", "z"}, "does not define z");
}

TEST(PostProcessor, AnIdIsANumberFrom0) {
  for (const Json& wrong : {Json(-1), Json(1.5), Json("8"), Json(std::uint64_t{1} << 31)}) {
    Json component = cls_and_sep("BertProcessing");
    component["sep"][1] = wrong;
    expect_failure(post_processor_from_json(component).status(), ErrorCode::kInvalidArgument,
                   {"sep: ", "id is not a number"});
  }
  Json component = cls_and_sep("RobertaProcessing");
  component["cls"] = Json::array({"[CLS]"});
  expect_failure(post_processor_from_json(component).status(), ErrorCode::kInvalidArgument,
                 {"cls is not [token, id]"});
}

TEST(PostProcessor, OthersAreRefusedByName) {
  expect_failure(post_processor_from_json({{"type", "Unheard"}}).status(),
                 ErrorCode::kUnimplemented, {"post_processor Unheard"});
  Json nested = template_of({"$A"});
  for (int depth = 0; depth < 1'000; ++depth) nested = processors({std::move(nested)});
  expect_failure(post_processor_from_json(nested).status(), ErrorCode::kInvalidArgument,
                 {"nested too deeply"});
}

}  // namespace
}  // namespace rl
