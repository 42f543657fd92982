#include "rl/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "rl/report/chart.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using support::TemporaryFolder;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// A run of three steps and a warm start, with the responses of two steps.
void write_run(const std::filesystem::path& folder) {
  std::ofstream(folder / "metrics.jsonl")
      << R"({"step":1,"total":2,"epoch":0,"data":{"sft/loss":2.5},"phase":"sft"})"
      << "\n"
      << R"({"step":1,"total":3,"epoch":0,"data":{"critic/score/mean":0.25,"critic/score/max":1,"critic/score/min":0,"actor/pg_loss":null,"timing_s/gen":3,"timing_s/step":4,"my/own":7}})"
      << "\n"
      << R"({"step":2,"total":3,"epoch":0,"data":{"critic/score/mean":0.75,"critic/score/max":1,"critic/score/min":0.5,"actor/pg_loss":0.5,"timing_s/gen":1,"timing_s/update_actor":1,"timing_s/step":2}})"
      << "\n"
      << R"({"step":3,"total":3,"ep)";
  std::ofstream(folder / "config.yaml") << "trainer:\n  note: <b>\n";
  std::filesystem::create_directories(folder / "rollouts");
  std::ofstream(folder / "rollouts" / "1.jsonl")
      << R"({"input":"2+2=","output":"</script>4","gts":"4","score":0.5,"tokens":["</script>","4"],"logprobs":[-0.5,-3],"advantages":[1,-1]})"
      << "\n";
  std::ofstream(folder / "rollouts" / "10.jsonl")
      << R"({"input":"a","output":"later","gts":null,"score":1,"step":10})"
      << "\n";
  std::ofstream(folder / "rollouts" / "notes.jsonl") << "not of the run";
}

TEST(RunLog, ReadsMetricsConfigAndRollouts) {
  const TemporaryFolder folder;
  write_run(folder.path());
  const auto run = read_run(folder.path(), folder.path() / "rollouts");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_EQ(run->name, folder.path().filename().string());
  ASSERT_EQ(run->records.size(), 3u) << "the torn line is left out";
  EXPECT_EQ(run->records[0].phase, "sft");
  EXPECT_TRUE(std::isnan(run->records[1].metrics.at("actor/pg_loss")));
  ASSERT_EQ(run->rollouts.size(), 2u);
  EXPECT_EQ(run->rollouts[1].step, 10) << "in the order of the numbers";
  EXPECT_EQ(run->rollouts[0].samples[0].logprobs, (std::vector<double>{-0.5, -3}));
  EXPECT_EQ(run->rollouts[1].samples[0].expected, "");
}

TEST(RunLog, ErrorsNameFileLineAndCure) {
  const TemporaryFolder folder;
  EXPECT_NE(read_run(folder.path() / "no", folder.path())
                .status()
                .message()
                .find("trainer.default_local_dir"),
            std::string::npos);
  EXPECT_NE(read_run(folder.path(), folder.path())
                .status()
                .message()
                .find("trainer.logger=[console,file]"),
            std::string::npos);
  const auto message = [&](const std::string& metrics, const std::string& rollout) {
    std::ofstream(folder.path() / "metrics.jsonl") << metrics;
    std::ofstream(folder.path() / "3.jsonl") << rollout;
    return read_run(folder.path(), folder.path()).status().message();
  };
  EXPECT_NE(
      message("{\"step\":1,\"data\":{}}\n[1]\n", "").find("metrics.jsonl:2: not a JSON object"),
      std::string::npos);
  EXPECT_NE(message("{\"data\":{}}\n", "").find("metrics.jsonl:1: "), std::string::npos);
  EXPECT_NE(message("{\"step\":1}\n", "{\"score\":1}\n{\"input\":1}\n").find("3.jsonl:2: "),
            std::string::npos);
  EXPECT_NE(message("{\"step\":1}\n", "{\"score\":1,\"tokens\":[null]}\n")
                .find("3.jsonl:1: not what a run writes there: "),
            std::string::npos);
  EXPECT_NE(message("{\"step\":1,\"data\":" + std::string(200'000, '[') +
                        std::string(200'000, ']') + "}\n",
                    "")
                .find("metrics.jsonl:1: not a JSON object"),
            std::string::npos);
  EXPECT_NE(message("{\"st", "").find("metrics.jsonl: no step is in it yet"), std::string::npos);
  EXPECT_EQ(message("{\"step\":1}\n", "{\"score\":1}\n"), "");
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
