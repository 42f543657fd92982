// The places that a run writes to, as they are found before its first step.
#include "rl/run/rl/run_logs.h"

#include "tests/rl/run/rl/toy_run.h"
#include "tests/support/expect_failure.h"
#include "tests/support/file_bytes.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class RunLogsTest : public ToyRunTest {
 protected:
  RunLogsTest() {
    fs::create_directories(run());
    options_ = options(config_);
    options_.loggers = {"file"};
  }
  runtime::Result<RunLogs> open(bool validates = true, std::int64_t steps_done = 0) const {
    return RunLogs::open(config_, options_, steps_done, validates);
  }

  const Config config_ = config({"data.seed=7"});
  TrainerOptions options_;
};

TEST_F(RunLogsTest, ARunThatContinuesKeepsTheRecordsOfItsSteps) {
  std::string kept;
  for (int step = 1; step <= 2; ++step)
    kept += R"({"step":)" + std::to_string(step) + R"(,"data":{}})" + "\n";
  std::ofstream(run() / "metrics.jsonl") << kept << R"({"step":3,"data":{}})"
                                         << "\n";
  const auto logs = open(/*validates=*/false, /*steps_done=*/2);
  ASSERT_TRUE(logs.ok()) << logs.status().to_string();
  EXPECT_EQ(support::content_of(run() / "metrics.jsonl"), kept);
  EXPECT_EQ(support::content_of(run() / "config.yaml"), config_.to_yaml());
}

TEST_F(RunLogsTest, FoldersOfSamplesAreTheRunsUntilItEnds) {
  options_.rollout_folder = folder_.path() / "samples";
  options_.validation_folder = folder_.path() / "validation";
  {
    const auto logs = open();
    ASSERT_TRUE(logs.ok()) << logs.status().to_string();
    support::expect_failure(open().status(), runtime::ErrorCode::kUnavailable,
                            {options_.rollout_folder.string()});
    EXPECT_FALSE(FolderLock::acquire(options_.validation_folder).ok());
  }
  EXPECT_TRUE(open().ok());
}

TEST_F(RunLogsTest, SamplesMayGoWhereTheRunIs) {
  const auto own = FolderLock::acquire(run());
  ASSERT_TRUE(own.ok());
  options_.rollout_folder = run();
  EXPECT_TRUE(open().ok());
}

TEST_F(RunLogsTest, OneFolderForTwoKindsOfSamplesIsRefused) {
  options_.rollout_folder = folder_.path() / "samples";
  fs::create_directories(options_.rollout_folder);
  options_.validation_folder = folder_.path() / "link";
  fs::create_directory_symlink(options_.rollout_folder, options_.validation_folder);
  support::expect_failure(open().status(), runtime::ErrorCode::kInvalidArgument,
                          {"trainer.rollout_data_dir", "trainer.validation_data_dir"});
  EXPECT_TRUE(open(/*validates=*/false).ok()) << "nothing is written there";
}

TEST_F(RunLogsTest, AFolderThatCannotBeMadeIsNamedWithItsKey) {
  options_.validation_folder = rows("in_the_way", "") + "/samples";
  const auto logs = open();
  EXPECT_FALSE(logs.ok());
  for (const std::string& part :
       {std::string("trainer.validation_data_dir"), options_.validation_folder.string()})
    EXPECT_NE(logs.status().message().find(part), std::string::npos) << logs.status().message();
}

}  // namespace
}  // namespace rl
