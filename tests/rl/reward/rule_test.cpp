#include "rl/reward/rule.h"

#include <gtest/gtest.h>

#include "rl/data/toy.h"
#include "rl/reward/number_text.h"

namespace rl {
namespace {

double rule_score(const std::string& rule, std::string_view response, std::string_view truth) {
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
  EXPECT_EQ(rule_score("number", "so it is 42.0", "42"), 1);
  EXPECT_EQ(rule_score("number", "1,000", "1000"), 1);
  EXPECT_EQ(rule_score("number", "42 apples and 3 pears", "42"), 0);
  EXPECT_EQ(rule_score("number", "none", "42"), 0);
  EXPECT_EQ(rule_score("number", "the answer is -3", "-3"), 1);
  EXPECT_EQ(rule_score("number", "x 72", "Natalia sold 48/2 = 24 clips. #### 72"), 1);
  EXPECT_EQ(rule_reward("number", "1", "abc").status().message(),
            "reward rule 'number': the ground truth 'abc' is not a number");
  EXPECT_FALSE(rule_reward("number", "1", "").ok());
  EXPECT_FALSE(rule_reward("number", "1", "1 or 2").ok());
}

// As verl, which compares the digits of integers.
TEST(Reward, IntegersAreComparedByAllTheirDigits) {
  for (const char* rule : {"number", "gsm8k"}) {
    EXPECT_EQ(rule_score(rule, "#### 10000000001", "10000000000"), 0) << rule;
    EXPECT_EQ(rule_score(rule, "#### 9007199254740993", "9007199254740992"), 0) << rule;
    EXPECT_EQ(rule_score(rule, "#### 12,345,678,901", "-12345678901"), 0) << rule;
    EXPECT_EQ(rule_score(rule, "#### 9007199254740993.0", "$9,007,199,254,740,993"), 1) << rule;
    EXPECT_EQ(rule_score(rule, "#### -0", "0.0"), 1) << rule;
    EXPECT_EQ(rule_score(rule, "#### 1" + std::string(400, '0'), "1" + std::string(400, '0')), 1);
    EXPECT_EQ(rule_score(rule, "#### 1" + std::string(400, '0'), "2" + std::string(400, '0')), 0);
    EXPECT_EQ(rule_score(rule, "#### 1" + std::string(400, '0'), "0.5"), 0) << rule;
    EXPECT_EQ(rule_score(rule, "#### 0.33333333333", "0.33333333334"), 1) << rule;
  }
  const auto near = Rule::create("number", {{"tolerance", 0.05}});
  EXPECT_EQ(near->score("about 98", "100").value_or(-9), 1);
  EXPECT_EQ(near->score("about 90", "100").value_or(-9), 0);
}

// What a JSON number below 1e-4 or from 1e16 is as a text.
TEST(Reward, ScientificNotationIsANumber) {
  for (const char* rule : {"number", "gsm8k"}) {
    EXPECT_EQ(rule_score(rule, "#### 0.00001", "1e-05"), 1) << rule;
    EXPECT_EQ(rule_score(rule, "#### 1e-5", "1e-05"), 1) << rule;
    EXPECT_EQ(rule_score(rule, "#### 0.00002", "1e-05"), 0) << rule;
    EXPECT_EQ(rule_score(rule, "#### 10,000,000,000,000,000", "1e+16"), 1) << rule;
    EXPECT_EQ(rule_score(rule, "#### 10000000000000001", "1E16"), 0) << rule;
    EXPECT_EQ(rule_score(rule, "#### 1.5e3 euros", "1500"), 1) << rule;
    EXPECT_EQ(rule_score(rule, "#### 5 eggs", "5"), 1) << rule;
    EXPECT_EQ(rule_score(rule, "#### 5e", "5"), 1) << rule;
  }
  EXPECT_FALSE(rule_reward("number", "1", "1e").ok());
}

// U+2212 and dashes before a number are signs, between numbers they are not.
TEST(Reward, SignsThatLookLikeMinus) {
  for (const char* sign : {"\u2212", "\u2013", "\u2014", "\u2010", "\u2012", "\ufe63", "\uff0d"}) {
    const std::string five = std::string(sign) + "5";
    EXPECT_EQ(rule_score("number", "The answer is " + five + ".", "5"), 0) << sign;
    EXPECT_EQ(rule_score("number", "The answer is " + five + ".", "-5"), 1) << sign;
    EXPECT_EQ(rule_score("number", "The answer is -5.", five), 1) << sign;
    EXPECT_EQ(rule_score("gsm8k", "#### " + five, "5"), 0) << sign;
    EXPECT_EQ(rule_score("gsm8k", "#### " + five, "-5"), 1) << sign;
    EXPECT_EQ(rule_score("math", "\\boxed{" + five + "}", "-5"), 1) << sign;
    EXPECT_EQ(rule_score("number", "pages 3" + five, "5"), 1) << sign;
  }
}

TEST(Reward, LengthsAreInCharacters) {
  std::string behind;
  for (int i = 0; i < 150; ++i) behind += "\u7684";
  EXPECT_EQ(rule_score("math_dapo", "Answer: 13\n" + behind, "13"), 1);
  EXPECT_EQ(rule_score("math_dapo", "Answer: 13\n" + behind + behind, "13"), -1);
  EXPECT_DOUBLE_EQ(rule_score("letters", "\u00e9a", "\u00e8a"), 0.5);
}

TEST(Reward, AVerdictSaysWhatWasCompared) {
  const auto judged = [](const char* rule, const char* response, const char* truth) {
    const auto verdict = Rule::create(rule)->judge(response, truth);
    EXPECT_TRUE(verdict.ok()) << verdict.status().to_string();
    return verdict->compared;
  };
  const Compared math = judged("math", "so \\boxed{x = 10\\text{ cm}^2}", "$10$");
  EXPECT_EQ(math.answer, "10");
  EXPECT_EQ(math.ground_truth, "10");
  EXPECT_EQ(judged("math", "ten", "10").answer, std::nullopt);
  EXPECT_EQ(judged("number", "about 1,000.50", "1000.5").answer, "1000.50");
  EXPECT_EQ(judged("gsm8k", "1000", "1000").answer, std::nullopt);
  EXPECT_EQ(judged("search_qa", "<answer>The \u00c9cole</answer>", R"(["\u00e9cole", "x"])").answer,
            "\u00e9cole");
  EXPECT_EQ(judged("search_qa", "<answer>y</answer>", R"(["a b", "x"])").ground_truth, "b | x");
  EXPECT_EQ(judged("exact", " a ", "b").answer, "a");
}

TEST(Reward, Gsm8kWantsTheMark) {
  EXPECT_EQ(rule_score("gsm8k", "reasoning 5\n#### 42", "42"), 1);
  EXPECT_EQ(rule_score("gsm8k", "#### 1,042", "1042"), 1);
  EXPECT_EQ(rule_score("gsm8k", "#### $42 is it", "42"), 1);
  EXPECT_EQ(rule_score("gsm8k", "it is 42", "42"), 0);
  EXPECT_EQ(rule_score("gsm8k", "#### 41 #### 42", "42"), 1);
}

TEST(Reward, TextRules) {
  EXPECT_EQ(rule_score("exact", " Oslo\n", "Oslo"), 1);
  EXPECT_EQ(rule_score("exact", "oslo", "Oslo"), 0);
  EXPECT_EQ(rule_score("contains", "It is Oslo.", "Oslo"), 1);
  EXPECT_EQ(rule_score("contains", "It is Rome.", "Oslo"), 0);
  EXPECT_EQ(rule_score("format", "<think>a</think> b", ""), 1);
  EXPECT_EQ(rule_score("format", "<think>a</think>", ""), 0);
  EXPECT_EQ(rule_score("format", "<think>a</think> b </think>", ""), 0);
  EXPECT_EQ(rule_score("format", "b", ""), 0);
}

TEST(Reward, LettersIsSmoothAndPunishesLength) {
  EXPECT_DOUBLE_EQ(rule_score("letters", "abcd", "abcd"), 1);
  EXPECT_DOUBLE_EQ(rule_score("letters", "abdc", "abcd"), 0.5);
  EXPECT_DOUBLE_EQ(rule_score("letters", "abcdabcd", "abcd"), 0.5);
  EXPECT_DOUBLE_EQ(rule_score("letters", "ab", "abcd"), 0.5);
  EXPECT_DOUBLE_EQ(rule_score("letters", "", "abcd"), 0);
}

TEST(Reward, OptionsOfRules) {
  const auto with = [](const char* rule, const nlohmann::ordered_json& options,
                       const char* response, const char* truth) {
    const auto made = Rule::create(rule, options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? made->score(response, truth).value_or(-9) : -9;
  };
  EXPECT_EQ(with("number", {{"tolerance", 0.01}}, "about 3.14", "3.1416"), 1);
  EXPECT_EQ(with("number", {{"tolerance", 0.0001}}, "about 3.14", "3.1416"), 0);
  EXPECT_EQ(with("gsm8k", {{"method", "flexible"}}, "it is 42", "42"), 1);
  EXPECT_EQ(with("gsm8k", {{"method", "strict"}}, "it is 42", "42"), 0);
  EXPECT_EQ(with("regex", {{"pattern", "\\d+ apples"}}, "I have 12 apples.", ""), 1);
  EXPECT_EQ(with("regex", {{"pattern", "\\d+ apples"}}, "I have apples.", ""), 0);
  EXPECT_EQ(with("regex", {{"pattern", "answer is (\\w+)"}},
                 "the answer is 3, no, the answer is Oslo.", "Oslo"),
            1);
  EXPECT_EQ(with("regex", {{"pattern", "answer is (\\w+)"}}, "the answer is Rome", "Oslo"), 0);
  EXPECT_EQ(with("format", {{"pattern", "<a>.*</a>"}}, "<a>x\ny</a>", ""), 1);
  EXPECT_EQ(with("format", {{"pattern", "<a>.*</a>"}}, "b <a>x</a>", ""), 0);
  EXPECT_NE(Rule::create("regex").status().message().find("reward.rule_kwargs.pattern"),
            std::string::npos);
  EXPECT_NE(Rule::create("regex", {{"pattern", "(a"}}).status().message().find("malformed at 2"),
            std::string::npos);
  EXPECT_NE(
      Rule::create("exact", {{"tolerance", 1}}).status().message().find("no option 'tolerance'"),
      std::string::npos);
  EXPECT_FALSE(Rule::create("number", {{"tolerance", -1}}).ok());
  EXPECT_FALSE(Rule::create("number", {{"tolerance", "x"}}).ok());
  EXPECT_FALSE(Rule::create("gsm8k", {{"method", "lax"}}).ok());
  const auto endless = Rule::create("regex", {{"pattern", "(x+x+)+[yz]"}});
  EXPECT_EQ(endless->score(std::string(60, 'x'), "").status().code(),
            runtime::ErrorCode::kResourceExhausted);
}

TEST(Reward, VerlsOtherScorers) {
  EXPECT_EQ(rule_score("math", "so \\boxed{\\frac12}", "0.5"), 1);
  EXPECT_EQ(rule_score("math", "\\boxed{1} and then \\boxed{2}", "2"), 1);
  EXPECT_EQ(rule_score("math", "it is 2", "2"), 0);
  EXPECT_EQ(rule_score("math", "\\boxed{2", "2"), 0);
  EXPECT_EQ(rule_score("math", "\\boxed{2}", "We see that it is \\boxed{2}."), 1);
  EXPECT_EQ(rule_score("math_dapo", "Thus.\nAnswer: $34$", "34"), 1);
  EXPECT_EQ(rule_score("math_dapo", "answer : \\boxed{34}", "34"), 1);
  EXPECT_EQ(rule_score("math_dapo", "Answer: 33\nAnswer: 34", "34"), 1);
  EXPECT_EQ(rule_score("math_dapo", "The answer is 34", "34"), -1);
  EXPECT_EQ(rule_score("math_dapo", "Answer: 34" + std::string(400, '.'), "34"), -1);
  EXPECT_EQ(rule_score("math_dapo", "", "34"), -1);
  EXPECT_DOUBLE_EQ(rule_score("geo3k", "<think>x</think> \\boxed{48}", "48"), 1.0);
  EXPECT_DOUBLE_EQ(rule_score("geo3k", "\\boxed{48}", "48"), 0.9);
  EXPECT_DOUBLE_EQ(rule_score("geo3k", "<think>x</think> \\boxed{4}", "48"), 0.1);
  EXPECT_EQ(rule_score("search_qa", "<answer>The Beatles!</answer>",
                       R"({"target": ["Queen", "beatles"]})"),
            1);
  EXPECT_EQ(rule_score("search_qa", "<answer>Beatles and Queen</answer>",
                       R"({"target": ["Queen", "beatles"]})"),
            0);
  EXPECT_EQ(rule_score("search_qa", "beatles", "beatles"), 0);
}

TEST(Reward, TheRuleOfADataSource) {
  EXPECT_EQ(rule_reward("nope", "", "").status().message(),
            "there is no rule 'nope'; there is exact, contains, number, gsm8k, math, math_dapo, "
            "geo3k, search_qa, regex, letters, format");
  for (const auto& [source, rule] : {std::pair{"openai/gsm8k", "gsm8k"},
                                     {"toy", "letters"},
                                     {"lighteval/MATH", "math"},
                                     {"aime2024", "math_dapo"},
                                     {"numina_olympiads", "math"}}) {
    EXPECT_EQ(rule_for_data_source(source).value_or("none"), rule);
  }
  EXPECT_EQ(rule_for_data_source("mine").status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(rule_for_data_source("mine").status().message().find("set reward.rule"),
            std::string::npos);
  const runtime::Status programs = rule_for_data_source("apps").status();
  EXPECT_EQ(programs.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(programs.message().find("'apps'"), std::string::npos);
  EXPECT_NE(programs.message().find("reward.sandbox_fusion.url"), std::string::npos);
}

TEST(Reward, ChecksRowsBeforeAnyAnswer) {
  EXPECT_TRUE(Rule::create("number")->check("42").ok());
  EXPECT_TRUE(Rule::create("format")->check("").ok());
  EXPECT_TRUE(Rule::create("regex", {{"pattern", "a"}})->check("").ok());
  EXPECT_FALSE(Rule::create("regex", {{"pattern", "(a)"}})->check("").ok());
  EXPECT_NE(Rule::create("exact")->check("").message().find("ground truth"), std::string::npos);
  EXPECT_EQ(Rule::create("number")->check("abc").code(), runtime::ErrorCode::kInvalidArgument);
}

TEST(Reward, ToyRowsAreScoredByTheirOwnGroundTruth) {
  for (const char* task : {"sort", "reverse", "copy", "count"}) {
    const auto options = ToyOptions::from_json({{"task", task}}, 1);
    ASSERT_TRUE(options.ok());
    const DataRow row = make_toy_dataset(*options).row(0);
    EXPECT_EQ(
        rule_score(*rule_for_data_source(row.data_source), row.ground_truth, row.ground_truth), 1.0)
        << task;
  }
}

}  // namespace
}  // namespace rl
