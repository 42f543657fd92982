#include "rl/reward/search_answer.h"

#include <gtest/gtest.h>

#include <utility>

#include "rl/reward/rule.h"

namespace rl {
namespace {

// As Python's lower(), string.punctuation, \b(a|an|the)\b and split() make it.
TEST(SearchAnswer, PlainWordsAreThoseOfPython) {
  const std::pair<const char*, const char*> cases[] = {
      {"The  Beatles!", "beatles"},
      {"\u00c9COLE", "\u00e9cole"},
      {"\u041c\u041e\u0421\u041a\u0412\u0410", "\u043c\u043e\u0441\u043a\u0432\u0430"},
      {"\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2"},  // a sigma at the end
      {"l\u2019a", "l\u2019"},
      {"a-b", "ab"},
      {"an\u00a0apple\u3000a day", "apple day"},
      {"theatre", "theatre"},
      {"", ""}};
  for (const auto& [text, words] : cases) EXPECT_EQ(plain_words(text), words) << text;
}

TEST(SearchAnswer, TheLastTagCounts) {
  EXPECT_EQ(tagged_answer("<answer>a</answer> <answer>b</answer>"), "b");
  EXPECT_EQ(tagged_answer("<answer>a"), std::nullopt);
  EXPECT_EQ(tagged_answer("a</answer>"), std::nullopt);
}

TEST(SearchAnswer, TargetsInEachForm) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(*targets_of(R"({"target": ["a", "b"]})"), (Words{"a", "b"}));
  EXPECT_EQ(*targets_of(R"({"target": "a"})"), Words{"a"});
  EXPECT_EQ(*targets_of(R"({"target": 5})"), Words{"5"});
  EXPECT_EQ(*targets_of(R"(["a", 1])"), (Words{"a", "1"}));
  EXPECT_EQ(*targets_of("plain"), Words{"plain"});
}

TEST(SearchAnswer, ListsWithoutAnswersAreRefused) {
  for (const char* empty : {"[]", R"({"target": []})"})
    EXPECT_EQ(targets_of(empty).status().message(),
              "reward rule 'search_qa': the ground truth is a list without members");
  for (const char* nested : {R"([["5"]])", R"({"target": [{"a": 1}]})", R"({"target": null})",
                             R"({"target": {"a": 1}})", "[null]"})
    EXPECT_NE(targets_of(nested).status().message().find("and one of them is "), std::string::npos)
        << nested;
  const auto rule = Rule::create("search_qa");
  EXPECT_FALSE(rule->check("[]").ok());
  EXPECT_FALSE(rule->check(R"([["5"]])").ok());
  EXPECT_TRUE(rule->check(R"(["5"])").ok());
}

}  // namespace
}  // namespace rl
