// Dry runs of a stand-in stage. Those of real stages with their data: dry_run_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "rl/app/stage_command.h"
#include "rl/config/stage_keys.h"
#include "tests/rl/app/offline_hub.h"
#include "tests/rl/run/no_stage.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class JudgedStage final : public NoStage {
 public:
  runtime::Status open(const StageSetup& setup) override {
    model = setup.model;
    found_model = std::filesystem::exists(model / "config.json");
    return opened;
  }
  runtime::Result<std::string> first_row() const override { return std::string("the row\n"); }
  std::vector<std::string> warnings() const override { return {"odd data"}; }
  bool validates() const override { return has_validation; }

  runtime::Status opened;
  bool has_validation = false;
  std::filesystem::path model = {};
  bool found_model = false;
};

class StageDryRun : public ::testing::Test {
 protected:
  runtime::Status judge(std::vector<std::string> overrides = {},
                        const std::vector<NodeRoom>& nodes = {}) {
    for (const std::string& given :
         {std::string("model.path=toy"), std::string("data.max_length=16"),
          "trainer.default_local_dir=" + folder_.file("run")})
      overrides.push_back(given);
    const auto config =
        Config::load({.file = {}, .overrides = std::move(overrides), .keys = &dpo_keys()});
    if (!config.ok()) return config.status();
    std::ostringstream out;
    const runtime::Status judged = stage_dry_run(*config, stage_, out, nodes);
    said_ = out.str();
    return judged;
  }
  bool says(const std::string& text) const { return said_.find(text) != std::string::npos; }

  const support::TemporaryFolder folder_;
  JudgedStage stage_;
  std::string said_;
};

TEST_F(StageDryRun, TheToyModelIsMadeForItAlone) {
  const runtime::Status judged = judge();
  EXPECT_TRUE(judged.ok()) << judged.to_string();
  EXPECT_TRUE(stage_.found_model);
  EXPECT_FALSE(std::filesystem::exists(stage_.model)) << stage_.model;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("run")))
      << "of the run itself there is nothing";
  EXPECT_TRUE(says("note: odd data\n")) << said_;
  EXPECT_TRUE(says("the row\n")) << said_;
}

TEST_F(StageDryRun, WhatTheStageFindsEndsIt) {
  stage_.opened = runtime::invalid_argument("row 7");
  support::expect_failure(judge(), runtime::ErrorCode::kInvalidArgument, {"row 7"});
  EXPECT_FALSE(says("the row")) << said_;
  EXPECT_FALSE(std::filesystem::exists(stage_.model)) << stage_.model;
}

TEST_F(StageDryRun, AMetricOfTheValidationNeedsOne) {
  const std::string key = "trainer.early_stop.metric";
  support::expect_failure(judge({key + "=val/loss", "trainer.test_freq=1"}),
                          runtime::ErrorCode::kInvalidArgument, {key});
  stage_.has_validation = true;
  const runtime::Status judged = judge({key + "=val/loss", "trainer.test_freq=1"});
  EXPECT_TRUE(judged.ok()) << judged.to_string();
  EXPECT_TRUE(says("; validated\n")) << said_;
}

TEST_F(StageDryRun, AMissingReferenceAndMissingMemoryAreToldTogether) {
  const OfflineHub hub;
  const std::string key = "preference.reference_path";
  support::expect_failure(judge({key + "=org/none"}, {{"node a", 1e6, 2}}),
                          runtime::ErrorCode::kResourceExhausted,
                          {key + ": org/none", "do not fit the nodes' memory"});
  support::expect_failure(judge({key + "=org/none"}), runtime::ErrorCode::kNotFound,
                          {key + ": org/none"});
}

}  // namespace
}  // namespace rl
