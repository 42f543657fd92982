#include "rl/report/evaluation.h"

#include <gtest/gtest.h>

#include "rl/report/evaluation_page.h"

namespace rl {
namespace {

EvaluatedAnswer answered(const std::string& text, bool right) {
  return {.text = text,
          .answer = text,
          .score = right ? 1.0 : 0.0,
          .right = right,
          .cut = false,
          .tokens = 4,
          .error = ""};
}
EvaluatedAnswer failed() {
  EvaluatedAnswer answer;
  answer.error = "no answer came";
  return answer;
}
EvaluatedPrompt prompt(std::vector<EvaluatedAnswer> answers, const std::string& source = "sums") {
  return {.prompt = "2+2?",
          .expected = "4",
          .data_source = source,
          .where = "test.jsonl:1",
          .answers = std::move(answers)};
}

TEST(PassAt, IsTheShareOfSubsetsWithARightAnswer) {
  // By hand: of the 10 pairs of 5 answers, 3 are of the 3 wrong ones alone.
  EXPECT_NEAR(pass_at(5, 2, 2), 0.7, 1e-12);
  EXPECT_NEAR(pass_at(5, 2, 1), 0.4, 1e-12);
  EXPECT_EQ(pass_at(5, 2, 4), 1.0);
  EXPECT_EQ(pass_at(5, 0, 5), 0.0);
  EXPECT_EQ(pass_at(5, 5, 1), 1.0);
  EXPECT_NEAR(pass_at(200, 1, 100), 0.5, 1e-12);
}

TEST(PassAt, AgreesWithCountingAllSubsets) {
  for (int n = 1; n <= 8; ++n) {
    for (int c = 0; c <= n; ++c) {
      for (int k = 1; k <= n; ++k) {
        int all = 0, with = 0;
        for (unsigned set = 0; set < (1U << n); ++set) {
          if (__builtin_popcount(set) != k) continue;
          ++all;
          with += (set & ((1U << c) - 1)) != 0 ? 1 : 0;
        }
        EXPECT_NEAR(pass_at(n, c, k), static_cast<double>(with) / all, 1e-12)
            << n << " " << c << " " << k;
      }
    }
  }
}

TEST(MajorityAt, CountsVotesOfEachBlock) {
  const std::vector<EvaluatedAnswer> answers = {answered("4", true),  answered("5", false),
                                                answered("4", true),  answered("5", false),
                                                answered("5", false), answered("4", true)};
  EXPECT_EQ(majority_at(answers, 3), 0.5);  // 4 wins the first block, 5 the second
  EXPECT_EQ(majority_at(answers, 6), 0.5);  // three each: a tie
  EXPECT_EQ(majority_at(answers, 5), 0.0);  // 5 has three of five; the sixth is in no block
}

TEST(MajorityAt, ErrorsDoNotVote) {
  EXPECT_EQ(majority_at({failed(), failed(), answered("4", true)}, 3), 1.0);
  EXPECT_EQ(majority_at({failed(), failed(), failed()}, 3), 0.0);
}

TEST(Estimate, HasWilsonsInterval) {
  // 20 of 50: the roots of (p - 0.4)^2 = z^2 p (1 - p) / 50.
  std::vector<double> values(50, 0.0);
  std::fill(values.begin(), values.begin() + 20, 1.0);
  const Estimate some = estimate(values);
  EXPECT_NEAR(some.value, 0.4, 1e-12);
  EXPECT_NEAR(some.low, 0.276078, 1e-4);
  EXPECT_NEAR(some.high, 0.538227, 1e-4);
  const Estimate none = estimate(std::vector<double>(10, 0.0));
  EXPECT_EQ(none.low, 0.0);
  EXPECT_NEAR(none.high, 0.277533, 1e-5);  // z^2 / (n + z^2)
  EXPECT_EQ(estimate({}).high, 1.0);
}

TEST(Summarize, KeepsDataSourcesApartAndCountsErrorsAsWrong) {
  EvaluatedAnswer cut = answered("4", true);
  cut.cut = true;
  const std::vector<EvaluationSummary> found =
      summarize({prompt({answered("4", true), failed()}, "b"), prompt({cut, cut}, "a"),
                 prompt({answered("5", false), answered("4", true)}, "b")});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].data_source, "a");
  EXPECT_EQ(found[0].cut, 1.0);
  EXPECT_EQ(found[1].data_source, "b");
  EXPECT_EQ(found[1].errors, 1);
  EXPECT_EQ(found[1].accuracy.value, 0.5);
  EXPECT_NEAR(found[1].score, 2.0 / 3, 1e-12) << "of those that have a score";
  EXPECT_EQ(found[1].pass.at(2).value, 1.0);
  EXPECT_TRUE(found[1].majority.empty()) << "of two that differ nothing is the majority";
  EXPECT_EQ(found[2].data_source, "all");
  EXPECT_NEAR(found[2].accuracy.value, 2.0 / 3, 1e-12);
  EXPECT_EQ(summarize({prompt({answered("4", true)})}).size(), 1u) << "one source needs no 'all'";
}

TEST(Summarize, TakesPowersOfTwoAndTheNumberItself) {
  const EvaluationSummary summary =
      summarize({prompt(std::vector<EvaluatedAnswer>(6, answered("4", true)))}).front();
  std::vector<std::int64_t> pass, majority;
  for (const auto& [k, value] : summary.pass) pass.push_back(k);
  for (const auto& [k, value] : summary.majority) majority.push_back(k);
  EXPECT_EQ(pass, (std::vector<std::int64_t>{2, 4, 6}));
  EXPECT_EQ(majority, (std::vector<std::int64_t>{4, 6}));
}

TEST(EvaluationPage, ShowsAnswersAsTextAndSaysWhatIsLeftOut) {
  EvaluatedPrompt bad =
      prompt({answered("<script>alert(1)</script>", false), answered("4", true), failed()});
  bad.prompt = "is 1 < 2 & \"so\" on?";
  const std::vector<EvaluatedPrompt> prompts = {
      bad, prompt({answered("4", true), answered("4", true), answered("4", true)})};
  const std::string html =
      evaluation_html(summarize(prompts), prompts,
                      {.title = "<model>", .facts = {{"seed", "7"}}, .prompts_max = 1});
  EXPECT_EQ(html.find("<script>alert"), html.npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(1)&lt;/script&gt;"), html.npos);
  EXPECT_NE(html.find("is 1 &lt; 2 &amp; &#34;so&#34; on?"), html.npos);
  EXPECT_NE(html.find("data-right='some'"), html.npos);
  EXPECT_EQ(html.find("data-right='all'"), html.npos) << "the second prompt is over the limit";
  EXPECT_NE(html.find("the first 1 of 2 prompts"), html.npos);
  EXPECT_NE(html.find("error: no answer came"), html.npos);
  EXPECT_NE(html.find("pass@3"), html.npos);
  EXPECT_EQ(html.find("src="), html.npos) << "it needs nothing besides itself";
}

}  // namespace
}  // namespace rl
