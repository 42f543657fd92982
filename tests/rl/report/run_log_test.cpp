#include "rl/report/run_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/rl/report/small_run.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using support::TemporaryFolder;

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

// A file of another release, or one that was edited, may have fewer numbers than tokens.
TEST(RunLog, NumbersOfTokensAreOneForEachOrNone) {
  const TemporaryFolder folder;
  write_run(folder.path());
  std::ofstream(folder.path() / "rollouts" / "1.jsonl")
      << R"({"output":"ab","score":null,"tokens":["a","b"],"logprobs":[-1],)"
         R"("advantages":[1,null],"response_mask":[1,0,1]})"
      << "\n";
  const auto run = read_run(folder.path(), folder.path() / "rollouts");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  const RolloutSample& sample = run->rollouts[0].samples[0];
  EXPECT_TRUE(std::isnan(sample.score));
  EXPECT_TRUE(sample.logprobs.empty());
  EXPECT_TRUE(sample.mask.empty());
  ASSERT_EQ(sample.advantages.size(), 2u);
  EXPECT_TRUE(std::isnan(sample.advantages[1]));
}

TEST(RunLog, ARunWithoutSamplesOrConfigurationIsWhole) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "metrics.jsonl") << "{\"step\":1}\n";
  const auto run = read_run(folder.path(), folder.path() / "none");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_EQ(run->config, "");
  EXPECT_TRUE(run->rollouts.empty());
}

}  // namespace
}  // namespace rl
