#include "rl/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rl/metrics/console_sink.h"
#include "rl/metrics/json_lines_sink.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Metrics, DistributionHasMeanMaxAndMin) {
  Metrics metrics;
  add_distribution(metrics, "critic/score", {1, 2, 6});
  EXPECT_EQ(metrics,
            (Metrics{{"critic/score/mean", 3}, {"critic/score/max", 6}, {"critic/score/min", 1}}));
  add_distribution(metrics, "none", {});
  EXPECT_EQ(metrics.size(), 3u);
}

TEST(ConsoleSink, LineBeginsWithStepAndEpochAndKeepsAFixedOrder) {
  const StepRecord record{3,
                          10,
                          1,
                          {{"timing_s/step", 2.5},
                           {"critic/score/mean", 0.25},
                           {"actor/lr", 1e-6},
                           {"zzz/unwatched", 1},
                           {"val-core/acc", 0.5}}};
  EXPECT_EQ(ConsoleSink::line(record),
            "step:3/10 - epoch:1 - critic/score/mean:0.2500 - actor/lr:1.000e-06 - "
            "timing_s/step:2.5000 - val-core/acc:0.5000");
}

TEST(ConsoleSink, PrintsEveryIntervalAndTheLastStep) {
  char* buffer = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&buffer, &size);
  {
    ConsoleSink sink(out, {.interval = 3});
    for (std::int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(sink.write({step, 5, 0, {}}).ok());
  }
  std::fclose(out);
  EXPECT_EQ(std::string(buffer), "step:1/5 - epoch:0\nstep:3/5 - epoch:0\nstep:5/5 - epoch:0\n");
  std::free(buffer);
}

// A reward function names metrics; where there is a bar, there is a terminal.
TEST(ConsoleSink, NamesDoNotCommandATerminal) {
  for (const bool bar : {true, false}) {
    char* buffer = nullptr;
    std::size_t size = 0;
    std::FILE* out = ::open_memstream(&buffer, &size);
    {
      ConsoleSink sink(out, {.interval = 1, .bar = bar});
      ASSERT_TRUE(sink.write({1, 2, 0, {{"val/\x1b]0;x\x07\u202e", 1.0}}}).ok());
    }
    std::fclose(out);
    const std::string text = buffer;
    EXPECT_NE(text.find(bar ? "val/\\x1b]0;x\\x07\\u202e:1.0000" : "val/\x1b]0;x\x07\u202e:1.0000"),
              std::string::npos)
        << text;
    std::free(buffer);
  }
}

TEST(ConsoleSink, BarFitsItsWidth) {
  const std::string bar = ConsoleSink::bar(5, 10, 2.25, 80);
  EXPECT_LE(bar.size(), 80u);
  EXPECT_NE(bar.find(" 50%"), std::string::npos);
  EXPECT_NE(bar.find("ETA 0:11"), std::string::npos);
  EXPECT_NE(ConsoleSink::bar(0, 10000, 3.0, 80).find("ETA 8:20:00"), std::string::npos);
}

TEST(JsonLinesSink, WritesOneObjectALineAndNullForNan) {
  const support::TemporaryFolder folder;
  const auto path = folder.path() / "deep" / "metrics.jsonl";
  auto sink = JsonLinesSink::open(path, 0);
  ASSERT_TRUE(sink.ok()) << sink.status().to_string();
  ASSERT_TRUE((*sink)->write({1, 2, 0, {{"a", 0.5}, {"b", std::nan("")}}}).ok());
  EXPECT_EQ(read(path), "{\"step\":1,\"total\":2,\"epoch\":0,\"data\":{\"a\":0.5,\"b\":null}}\n");
}

TEST(JsonLinesSink, ResumingDropsLaterStepsAndATornLine) {
  const support::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::ofstream(path) << "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\nnonsense\n{\"step\":2";
  ::testing::internal::CaptureStderr();  // where the log goes
  auto sink = JsonLinesSink::open(path, 2);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(
                "metrics.jsonl: skipped 1 line(s) that are not records of a step"),
            std::string::npos);
  ASSERT_TRUE(sink.ok());
  ASSERT_TRUE((*sink)->write({3, 4, 0, {}}).ok());
  EXPECT_EQ(read(path),
            "{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"total\":4,\"epoch\":0,\"data\":{}}\n");
}

TEST(JsonLinesSink, ARunThatBeginsAgainKeepsNothing) {
  const support::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::ofstream(path) << "{\"step\":0}\n{\"step\":1,\"phase\":\"sft\"}\n";
  auto sink = JsonLinesSink::open(path, 0);
  ASSERT_TRUE(sink.ok());
  EXPECT_EQ(read(path), "");
}

TEST(JsonLinesSink, NamesThePathItCannotWrite) {
  const auto sink = JsonLinesSink::open("/proc/no/metrics.jsonl", 0);
  ASSERT_FALSE(sink.ok());
  EXPECT_NE(sink.status().message().find("/proc/no/metrics.jsonl"), std::string::npos);
}

TEST(MetricLogger, WritesLaterAndInOrderWhatASinkCouldNotTake) {
  struct Failing : MetricSink {
    explicit Failing(bool& is_full, std::vector<std::int64_t>& written)
        : full(is_full), steps(written) {}
    runtime::Status write(const StepRecord& record) override {
      if (full) return runtime::resource_exhausted("full");
      steps.push_back(record.step);
      return {};
    }
    bool& full;
    std::vector<std::int64_t>& steps;
  };
  bool full = false, never = false;
  std::vector<std::int64_t> steps, others;
  {
    MetricLogger logger;
    logger.add(std::make_unique<Failing>(full, steps));
    logger.add(std::make_unique<Failing>(never, others));
    for (const std::int64_t step : {1, 2, 3, 4, 5}) {
      full = step == 2 || step == 3 || step == 5;
      logger.write({step, 5, 0, {}});
      if (step == 3) {
        EXPECT_EQ(steps, (std::vector<std::int64_t>{1}));
      }
    }
    EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4}));
    full = false;
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5})) << "the last try";
  EXPECT_EQ(others, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace rl
