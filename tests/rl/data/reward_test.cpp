#include "rl/data/reward.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

double score(std::string_view rule, std::string_view response, std::string_view truth) {
  const auto value = rule_reward(rule, response, truth);
  EXPECT_TRUE(value.ok()) << value.status().to_string();
  return value.ok() ? *value : -1;
}

TEST(Reward, LastNumberUnderstandsHowPeopleWriteThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"12 + 30 = 42", "42"},
      {"The answer is 1,234.", "1234"},
      {"$5.50!", "5.50"},
      {"-7", "-7"},
      {"= -$3", "-3"},
      {"3-5", "5"},
      {"x-5", "5"},
      {"no digits", ""},
      {"", ""},
      {".5", "0.5"},
      {"50%", "50"},
      {"1,23", "23"},
      {"12,345,678", "12345678"},
      {"1. 2. 3.", "3"},
      {"-", ""},
      {"3...", "3"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(last_number(text), expected) << text;
}

TEST(Reward, NumberComparesByValue) {
  EXPECT_EQ(score("number", "so it is 42.0", "42"), 1);
  EXPECT_EQ(score("number", "1,000", "1000"), 1);
  EXPECT_EQ(score("number", "42 apples and 3 pears", "42"), 0);
  EXPECT_EQ(score("number", "none", "42"), 0);
  EXPECT_EQ(score("number", "the answer is -3", "-3"), 1);
  EXPECT_EQ(score("number", "x 72", "Natalia sold 48/2 = 24 clips. #### 72"), 1);
  EXPECT_EQ(rule_reward("number", "1", "abc").status().message(), "reward rule 'number': the ground truth 'abc' is not a number");
  EXPECT_FALSE(rule_reward("number", "1", "").ok());
  EXPECT_FALSE(rule_reward("number", "1", "1 or 2").ok());
}

TEST(Reward, Gsm8kWantsTheMark) {
  EXPECT_EQ(score("gsm8k", "reasoning 5\n#### 42", "42"), 1);
  EXPECT_EQ(score("gsm8k", "#### 1,042", "1042"), 1);
  EXPECT_EQ(score("gsm8k", "#### $42 is it", "42"), 1);
  EXPECT_EQ(score("gsm8k", "it is 42", "42"), 0);
  EXPECT_EQ(score("gsm8k", "#### 41 #### 42", "42"), 1);
}

TEST(Reward, TextRules) {
  EXPECT_EQ(score("exact", " Oslo\n", "Oslo"), 1);
  EXPECT_EQ(score("exact", "oslo", "Oslo"), 0);
  EXPECT_EQ(score("contains", "It is Oslo.", "Oslo"), 1);
  EXPECT_EQ(score("contains", "It is Rome.", "Oslo"), 0);
  EXPECT_EQ(score("format", "<think>a</think> b", ""), 1);
  EXPECT_EQ(score("format", "<think>a</think>", ""), 0);
  EXPECT_EQ(score("format", "<think>a</think> b </think>", ""), 0);
  EXPECT_EQ(score("format", "b", ""), 0);
}

TEST(Reward, LettersIsSmoothAndPunishesLength) {
  EXPECT_DOUBLE_EQ(score("letters", "abcd", "abcd"), 1);
  EXPECT_DOUBLE_EQ(score("letters", "abdc", "abcd"), 0.5);
  EXPECT_DOUBLE_EQ(score("letters", "abcdabcd", "abcd"), 0.5);
  EXPECT_DOUBLE_EQ(score("letters", "ab", "abcd"), 0.5);
  EXPECT_DOUBLE_EQ(score("letters", "", "abcd"), 0);
}

TEST(Reward, TheRuleOfARun) {
  EXPECT_EQ(rule_reward("nope", "", "").status().message(),
            "reward.rule: there is no rule 'nope'; there is exact, contains, number, gsm8k, letters, format");
  const auto by_source = RuleReward::from_config(*Config::load({std::nullopt, {}}));
  EXPECT_EQ(*by_source->compute("openai/gsm8k", "#### 4", "4"), 1);
  EXPECT_EQ(*by_source->compute("toy", "ab", "ac"), 0.5);
  EXPECT_NE(by_source->compute("mine", "a", "a").status().message().find("set reward.rule"), std::string::npos);
  const auto fixed = RuleReward::from_config(*Config::load({std::nullopt, {"reward.rule=exact"}}));
  EXPECT_EQ(*fixed->compute("toy", "ab", "ac"), 0);
  EXPECT_FALSE(RuleReward::from_config(*Config::load({std::nullopt, {"reward.rule=exakt"}})).ok());
}

TEST(Reward, ChecksRowsBeforeAnyAnswer) {
  EXPECT_TRUE(RuleReward("number").check("", "42").ok());
  EXPECT_TRUE(RuleReward("format").check("", "").ok());
  EXPECT_NE(RuleReward("exact").check("", "").message().find("ground truth"), std::string::npos);
  EXPECT_EQ(RuleReward("number").check("", "abc").code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(RuleReward("").check("unheard/of", "1").message().find("unheard/of"), std::string::npos);
}

}  // namespace
}  // namespace rl
