// The pipeline's parts. Runs of whole pipelines: tests/rl/trainer/pipeline_test.cpp.
#include "rl/app/pipeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "rl/config/yaml.h"
#include "rl/run/pipeline_file.h"
#include "tests/rl/app/command_run.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

// A stage that is run all the same runs this program, which then finds no test to run.
class CompletePipeline : public ::testing::Test {
 protected:
  CompletePipeline() {
    std::ofstream(file_) << "folder: " << folder_.file("runs")
                         << "\nstages:\n"
                            "  one:\n    command: sft\n    model.path: toy\n"
                            "    data.train_files: "
                         << folder_.file("rows.jsonl")
                         << "\n"
                            "  two:\n    command: sft\n    model.path: toy\n"
                            "    data.dataset_name: toy\n";
    const auto pipeline = PipelineFile::load(file_);
    EXPECT_TRUE(pipeline.ok()) << pipeline.status().to_string();
    for (const PipelineStage& stage : pipeline->stages) {
      const auto config = stage_config(*pipeline, stage, /*placeholders=*/false);
      EXPECT_TRUE(config.ok()) << config.status().to_string();
      fs::create_directories(stage.folder);
      std::ofstream(stage.folder / kStageDoneFile) << write_yaml(*config);
    }
  }
  CommandRun pipeline(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {"pipeline", file_});
    return run_here(pipeline_command, std::move(arguments));
  }

  const support::ScopedVariable no_test_{"GTEST_FILTER", "-*"};
  const support::TemporaryFolder folder_;
  const std::string file_ = folder_.file("pipeline.yaml");
};

TEST_F(CompletePipeline, RunsNothingAndNeedsNoDataAnyMore) {
  const CommandRun run = pipeline();
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.out, "stage 1 of 2: one: complete\nstage 2 of 2: two: complete\n");
  const CommandRun dry = pipeline({"--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.error;
  EXPECT_EQ(dry.out, "stage 1 of 2: one (starling sft): complete\n  " + folder_.file("runs/one") +
                         "\nstage 2 of 2: two (starling sft): complete\n  " +
                         folder_.file("runs/two") + "\n");
}

TEST_F(CompletePipeline, AStageToRunAgainNeedsItsData) {
  fs::remove(folder_.path() / "runs/one" / kStageDoneFile);
  const CommandRun run = pipeline();
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.error.find("stage one: data.train_files: " + folder_.file("rows.jsonl")),
            std::string::npos)
      << run.error;
  EXPECT_EQ(run.out, "");
}

TEST_F(CompletePipeline, AnOverrideOfACompleteStageIsRefusedWithItsCure) {
  const CommandRun run = pipeline({"two.model.path=/another"});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.error.find("stage two was completed with other keys"), std::string::npos)
      << run.error;
  EXPECT_NE(run.error.find("remove " + folder_.file("runs/two")), std::string::npos) << run.error;
}

}  // namespace
}  // namespace rl
