#include "rl/tokenizer/special_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/rl/tokenizer/slow_files.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;
using testing::slow_files;
using NamesAndTexts = std::vector<std::pair<std::string, std::string>>;

NamesAndTexts named_in(const SlowTokenizerFiles& files,
                       const std::vector<SpecialTokenDefault>& defaults = {}) {
  auto named = named_special_tokens(files, defaults);
  EXPECT_TRUE(named.ok()) << named.status().to_string();
  NamesAndTexts texts;
  for (const NamedSpecialToken& one : named.value_or({}))
    texts.emplace_back(one.name, one.token.content);
  return texts;
}

std::vector<std::string> extras_in(const SlowTokenizerFiles& files) {
  auto extras = extra_special_tokens(files);
  EXPECT_TRUE(extras.ok()) << extras.status().to_string();
  std::vector<std::string> texts;
  for (const AddedToken& one : extras.value_or({})) texts.push_back(one.content);
  return texts;
}

// New tokens get their ids in this order, which transformers 5.24 has.
TEST(NamedSpecialTokens, TheUsualNamesComeFirstThenAModelsOwnInTheFilesOrder) {
  const auto files = slow_files({.config = R"({"image_token": "<i>", "pad_token": "<p>",
    "extra_special_tokens": {"tool": "<t>"}, "audio_token": "<a>", "bos_token": "<b>",
    "max_token": 7, "add_bos_token": true})"});
  EXPECT_EQ(named_in(files), (NamesAndTexts{{"bos_token", "<b>"},
                                            {"pad_token", "<p>"},
                                            {"image_token", "<i>"},
                                            {"audio_token", "<a>"},
                                            {"tool", "<t>"}}));
}

TEST(NamedSpecialTokens, TheMapDecidesTheUsualNamesAndTheConfigAModelsOwn) {
  const char* map = R"({"eos_token": "<m>", "image_token": "<m>", "boi_token": "<o>"})";
  const auto both =
      slow_files({.config = R"({"eos_token": "<c>", "image_token": "<c>"})", .map = map});
  EXPECT_EQ(named_in(both),
            (NamesAndTexts{{"eos_token", "<m>"}, {"image_token", "<c>"}, {"boi_token", "<o>"}}));
  const auto whole =
      slow_files({.config = R"({"eos_token": "<c>", "added_tokens_decoder": {}})", .map = map});
  EXPECT_EQ(named_in(whole), (NamesAndTexts{{"eos_token", "<c>"}})) << "the map counts no more";
}

TEST(NamedSpecialTokens, DefaultsAreForWhatTheFilesDoNotMention) {
  const std::vector<SpecialTokenDefault> defaults = {
      {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
  const auto files = slow_files(
      {.config = R"({"eos_token": "<c>", "unk_token": "<c>"})", .map = R"({"unk_token": null})"});
  EXPECT_EQ(named_in(files, defaults), (NamesAndTexts{{"bos_token", "<s>"}, {"eos_token", "<c>"}}));
  EXPECT_TRUE(denies_special_token(files, "unk_token"));
  EXPECT_FALSE(denies_special_token(files, "eos_token"));
  EXPECT_FALSE(denies_special_token(files, "bos_token")) << "the files say nothing of it";
}

TEST(NamedSpecialTokens, AreSpecialWhateverTheirEntrySays) {
  const auto named = named_special_tokens(
      slow_files(
          {.config = R"({"eos_token": {"content": "<e>", "lstrip": true, "special": false}})"}),
      {});
  ASSERT_TRUE(named.ok()) << named.status().to_string();
  ASSERT_EQ(named->size(), 1u);
  EXPECT_TRUE(named->front().token.special);
  EXPECT_TRUE(named->front().token.strip_left);
}

TEST(NamedSpecialTokens, DamageNamesTheToken) {
  expect_failure(named_special_tokens(slow_files({.config = R"({"eos_token": 5})"}), {}).status(),
                 ErrorCode::kInvalidArgument, {"eos_token"});
  expect_failure(
      named_special_tokens(slow_files({.config = R"({"extra_special_tokens": {"tool": 5}})"}), {})
          .status(),
      ErrorCode::kInvalidArgument, {"extra_special_tokens", "tool"});
  expect_failure(
      extra_special_tokens(slow_files({.config = R"({"additional_special_tokens": [5]})"}))
          .status(),
      ErrorCode::kInvalidArgument, {"additional_special_tokens"});
}

TEST(ExtraSpecialTokens, ComeFromTheFirstListThatHasAny) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(extras_in(slow_files({.config = R"({"extra_special_tokens": ["<x>"],
                                               "additional_special_tokens": ["<y>"]})"})),
            (Texts{"<x>"}));
  EXPECT_EQ(extras_in(slow_files({.config = R"({"extra_special_tokens": [],
                                               "additional_special_tokens": ["<y>"]})"})),
            (Texts{"<y>"}));
  const char* map = R"({"additional_special_tokens": ["<m>", "<n>", "<m>"]})";
  EXPECT_EQ(
      extras_in(slow_files({.config = R"({"additional_special_tokens": ["<y>"]})", .map = map})),
      (Texts{"<y>"}));
  EXPECT_EQ(extras_in(slow_files({.config = "{}", .map = map})), (Texts{"<m>", "<n>"}));
  EXPECT_EQ(extras_in(slow_files({.config = R"({"added_tokens_decoder": {}})", .map = map})),
            Texts{});
}

}  // namespace
}  // namespace rl
