#include "rl/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "rl/report/chart.h"
#include "tests/rl/report/small_run.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using support::TemporaryFolder;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Chart, AGapIsNoLineAndAConstantHasARange) {
  const double nan = std::nan("");
  const std::string gap = line_chart({{"a", {1, 2, 3, 4, 5}, {1, 2, nan, 4, 5}}});
  EXPECT_EQ(count(gap, "<polyline"), 2u);
  EXPECT_EQ(line_chart({{"a", {1, 2}, {nan, nan}}}), "");
  const std::string constant = line_chart({{"a", {1, 2}, {3, 3}}});
  EXPECT_EQ(count(constant, "<polyline"), 1u);
  EXPECT_EQ(count(constant, "nan"), 0u);
  EXPECT_EQ(count(constant, "inf"), 0u);
}

TEST(Chart, ManyPointsAreThinnedWithTheirRange) {
  Series many{"m", {}, {}};
  for (int i = 0; i < 10'000; ++i) {
    many.steps.push_back(i);
    many.values.push_back(i % 2);
  }
  const std::string chart = line_chart({many});
  EXPECT_LT(chart.size(), 30'000u);
  EXPECT_EQ(count(chart, "<polygon"), 1u);
}

TEST(Report, IsOnePageThatNeedsNothingElse) {
  const TemporaryFolder folder;
  write_run(folder.path());
  const auto run = read_run(folder.path(), folder.path() / "rollouts");
  ASSERT_TRUE(run.ok());
  const auto page = report_html(*run, {});
  ASSERT_TRUE(page.ok()) << page.status().to_string();
  EXPECT_EQ(count(*page, "http://") + count(*page, "https://") + count(*page, "src="), 0u);
  EXPECT_EQ(count(*page, "</script>"), 1u) << "what a model said is text";
  EXPECT_NE(page->find("&lt;/script&gt;"), std::string::npos);
  EXPECT_NE(page->find("note: &lt;b&gt;"), std::string::npos);
  EXPECT_EQ(count(*page, "<h3>critic/score</h3>"), 1u) << "mean, max and min are one chart";
  for (const char* there : {"my/own", "sft/loss", "0.25 → 0.75", "how the scores are spread",
                            "update_actor", "advantage -1", "log-probability -3"}) {
    EXPECT_NE(page->find(there), std::string::npos) << there;
  }
}

TEST(Report, TokensOfToolsHaveNoColour) {
  const TemporaryFolder folder;
  write_run(folder.path());
  std::ofstream(folder.path() / "rollouts" / "1.jsonl")
      << R"({"input":"a","output":"ask ding fine","score":1,"tokens":["ask "," ding "," fine"],"logprobs":[-1,0,-1],"advantages":[1,0,1],"response_mask":[1,0,1]})"
      << "\n";
  const auto run = read_run(folder.path(), folder.path() / "rollouts");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  const auto page = report_html(*run, {});
  ASSERT_TRUE(page.ok()) << page.status().to_string();
  EXPECT_NE(page->find("a tool or a user wrote it'> ding </span>"), std::string::npos);
  EXPECT_EQ(count(*page, "class='tok'"), 2u);
}

TEST(Report, ShowsTheStepsThatAreAskedFor) {
  const TemporaryFolder folder;
  write_run(folder.path());
  const auto run = read_run(folder.path(), folder.path() / "rollouts");
  ASSERT_TRUE(run.ok());
  const auto page = report_html(*run, {.sample_steps = {10}, .samples_per_step = 1});
  ASSERT_TRUE(page.ok());
  EXPECT_NE(page->find("later"), std::string::npos);
  EXPECT_EQ(page->find("2+2="), std::string::npos);
  EXPECT_EQ(report_html(*run, {.sample_steps = {7}}).status().message(),
            "no responses of step 7 (there are 1 to 10)");
  RunLog bare = *run;
  bare.rollouts.clear();
  EXPECT_NE(
      report_html(bare, {.sample_steps = {7}}).status().message().find("trainer.rollout_data_dir"),
      std::string::npos);
  EXPECT_TRUE(report_html(bare, {}).ok());
}

}  // namespace
}  // namespace rl
