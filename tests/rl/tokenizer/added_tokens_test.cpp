#include "rl/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/rl/tokenizer/fake_parts.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using Json = nlohmann::json;
using runtime::ErrorCode;
using support::expect_failure;
using testing::SmallLetters;
using Found = std::vector<std::pair<std::string, std::int32_t>>;  // text by id, -1 between tokens

AddedTokens added_of(std::vector<AddedToken> tokens, const Normalizer* normalizer = nullptr) {
  auto made = AddedTokens::make(std::move(tokens), normalizer);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.value_or({});
}

Found found_in_original(const AddedTokens& tokens, std::string_view text) {
  std::vector<Segment> segments;
  tokens.split_original(text, segments);
  Found found;
  for (const Segment& segment : segments) found.emplace_back(segment.text, segment.id);
  return found;
}

TEST(AddedTokens, TheLeftmostCountsThenTheLongest) {
  const AddedTokens tokens = added_of(
      {{.id = 10, .content = "ab"}, {.id = 11, .content = "abc"}, {.id = 12, .content = "bcd"}});
  EXPECT_EQ(found_in_original(tokens, "abcd"), (Found{{"abc", 11}, {"d", -1}}));
  EXPECT_EQ(found_in_original(tokens, "xabd"), (Found{{"x", -1}, {"ab", 10}, {"d", -1}}));
  EXPECT_EQ(found_in_original(tokens, "bcdab"), (Found{{"bcd", 12}, {"ab", 10}}));
  EXPECT_EQ(found_in_original(tokens, ""), Found{});
}

TEST(AddedTokens, ASingleWordStandsBetweenNoLettersDigitsOrUnderscores) {
  const AddedTokens tokens = added_of({{.id = 10, .content = "ab", .single_word = true}});
  EXPECT_EQ(found_in_original(tokens, "ab-ab"), (Found{{"ab", 10}, {"-", -1}, {"ab", 10}}));
  EXPECT_EQ(found_in_original(tokens, "ab_ ab1 ab\u00e9 (ab)"),
            (Found{{"ab_ ab1 ab\u00e9 (", -1}, {"ab", 10}, {")", -1}}));
  EXPECT_EQ(found_in_original(tokens, "\u00e9ab abab"), (Found{{"\u00e9ab abab", -1}}));
}

TEST(AddedTokens, TakeTheWhiteSpaceOnTheirSides) {
  const AddedTokens tokens = added_of({{.id = 10, .content = "<l>", .strip_left = true},
                                       {.id = 11, .content = "<r>", .strip_right = true}});
  EXPECT_EQ(found_in_original(tokens, "a \u3000<l> b"),
            (Found{{"a", -1}, {" \u3000<l>", 10}, {" b", -1}}));
  EXPECT_EQ(found_in_original(tokens, "a <r> \u3000b"),
            (Found{{"a ", -1}, {"<r> \u3000", 11}, {"b", -1}}));
  EXPECT_EQ(found_in_original(tokens, "<r> <l>"), (Found{{"<r> ", 11}, {"<l>", 10}}))
      << "the space is the first one's";
  EXPECT_EQ(found_in_original(tokens, "\u200b<l>"), (Found{{"\u200b", -1}, {"<l>", 10}}))
      << "no white space";
}

TEST(AddedTokens, ATokenInWhiteSpaceThatAnotherTookIsFoundAgain) {
  const AddedTokens tokens =
      added_of({{.id = 11, .content = "<r>", .strip_right = true}, {.id = 13, .content = " "}});
  EXPECT_EQ(found_in_original(tokens, "<r>  x"),
            (Found{{"<r>  ", 11}, {" ", 13}, {" ", 13}, {"x", -1}}));
  EXPECT_EQ(found_in_original(tokens, "<r> \u3000b"),
            (Found{{"<r> \u3000", 11}, {" ", 13}, {"\u3000b", -1}}));
}

TEST(AddedTokens, NormalizedOnesAreLookedForInNormalizedTextAlone) {
  const SmallLetters normalizer;
  const AddedTokens tokens = added_of({{.id = 10, .content = "<T>", .normalized = true},
                                       {.id = 11, .content = "<U>"},
                                       {.id = 12, .content = "<C>", .in_text = false}},
                                      &normalizer);
  EXPECT_EQ(found_in_original(tokens, "<T><U><C>"), (Found{{"<T>", -1}, {"<U>", 11}, {"<C>", -1}}));
  std::vector<Segment> segments;
  tokens.split_normalized("<t><u><c>", segments);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].id, 10);
  EXPECT_EQ(segments[1].text, "<u><c>");
  ASSERT_NE(tokens.find("<T>"), nullptr) << "its content is as in the file";
  EXPECT_EQ(tokens.find("<T>")->shown, "<t>");
  EXPECT_EQ(tokens.find(11)->shown, "<U>");
  EXPECT_EQ(tokens.find("<t>"), nullptr);
  EXPECT_EQ(tokens.find(13), nullptr);
  expect_failure(
      AddedTokens::make({{.id = 1, .content = "no!", .normalized = true}}, &normalizer).status(),
      ErrorCode::kResourceExhausted, {"added token no!: "});
}

TEST(AddedTokensFromJson, OnlySpecialOnesAreFoundInTheOriginalUnlessTheySayOtherwise) {
  const auto read = [](const Json& entry, bool special_otherwise) {
    return added_token_from_json(entry, special_otherwise).value_or({});
  };
  EXPECT_TRUE(read("<s>", true).special);
  EXPECT_FALSE(read("<s>", true).normalized);
  EXPECT_FALSE(read("<s>", false).special);
  EXPECT_TRUE(read("<s>", false).normalized);
  EXPECT_TRUE(read({{"content", "<s>"}}, false).normalized);
  EXPECT_FALSE(read({{"content", "<s>"}, {"special", true}}, false).normalized);
  const AddedToken all = read({{"content", "<s>"},
                               {"special", true},
                               {"normalized", true},
                               {"rstrip", true},
                               {"single_word", true}},
                              false);
  EXPECT_TRUE(all.normalized && all.strip_right && all.single_word);
  EXPECT_FALSE(all.strip_left);
}

TEST(AddedTokensFromJson, DamageNamesTheEntry) {
  const auto expect = [](const Json& entry, const std::string& mentions) {
    const Json tokens = Json::array({{{"id", 0}, {"content", "<s>"}}, entry});
    expect_failure(added_tokens_from_json({{"added_tokens", tokens}}).status(),
                   ErrorCode::kInvalidArgument, {"added_tokens[1]: ", mentions});
  };
  expect({{"content", "a"}}, "id is missing");
  expect({{"id", 1}}, "content is missing");
  expect({{"id", 1}, {"content", "a"}, {"lstrip", "yes"}}, "lstrip is string");
  expect({{"id", -1}, {"content", "a"}}, "id -1 is out of range");
  expect({{"id", 1 << 30}, {"content", "a"}}, "is out of range");
  EXPECT_TRUE(added_tokens_from_json(Json::object()).ok()) << "there may be none";
  EXPECT_EQ(added_tokens_from_json({{"added_tokens", "<s>"}}).status().code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
