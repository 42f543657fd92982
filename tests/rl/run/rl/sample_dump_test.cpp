#include "rl/run/rl/sample_dump.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/rl/run/fakes.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class NoTexts : public FakeScore {
 public:
  using FakeScore::FakeScore;
  runtime::Result<std::vector<std::vector<SampleText>>> texts(
      const BatchRefs&, const std::vector<std::vector<RewardTask>>&,
      const std::vector<std::vector<double>>&, std::int64_t) override {
    return runtime::unavailable("a worker is gone");
  }
};

class SampleDumpTest : public ::testing::Test {
 protected:
  // Two samples of each of two workers.
  DumpedBatch dumped() {
    const StepBatch batch = fake_batch(batches_, 2, 2, 2);
    return {.batches = batch.batches(),
            .tasks = batch.tasks(),
            .scores = {{0.0, 1.0}, {2.0, 3.0}},
            .extras = {{{"acc", 0.0}}, {{"acc", 1.0}}, {{"acc", 2.0}}, {{"acc", 3.0}}}};
  }

  FakeBatches batches_;
  FakeScore reward_{batches_};
  support::TemporaryFolder folder_;
};

TEST_F(SampleDumpTest, SamplesOfAllWorkersStandNextToTheirNumbers) {
  SampleDump dump(folder_.path(), reward_);
  EXPECT_TRUE(dump.is_wanted());
  dump.write(4, /*append=*/false, dumped());
  ASSERT_TRUE(dump.flush().ok());
  std::ifstream in(folder_.file("4.jsonl"));
  double expected = 0.0;
  for (std::string line; std::getline(in, line); expected += 1.0) {
    const auto sample = nlohmann::json::parse(line);
    EXPECT_EQ(sample["score"], expected);
    EXPECT_EQ(sample["acc"], expected);
  }
  EXPECT_EQ(expected, 4.0);
}

TEST_F(SampleDumpTest, TextsThatCannotBeHadCostTheFileAlone) {
  NoTexts reward(batches_);
  SampleDump dump(folder_.path(), reward);
  dump.write(4, /*append=*/false, dumped());
  EXPECT_FALSE(std::filesystem::exists(folder_.file("4.jsonl")));
  EXPECT_TRUE(dump.flush().ok());
}

TEST_F(SampleDumpTest, WithoutAFolderNothingIsWanted) {
  EXPECT_FALSE(SampleDump({}, reward_).is_wanted());
}

}  // namespace
}  // namespace rl
