#include "rl/app/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/app/command_run.h"
#include "tests/rl/report/small_run.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class ReportCommand : public ::testing::Test {
 protected:
  ReportCommand() { write_run(folder_.path()); }
  CommandRun report(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"report", folder_.path().string()});
    return run_here(report_command, std::move(arguments));
  }
  std::string page(const std::string& name = "report.html") const {
    return support::content_of(folder_.file(name));
  }

  const support::TemporaryFolder folder_;
};

TEST_F(ReportCommand, ThePageGoesIntoTheRunsFolder) {
  const CommandRun done = report({});
  EXPECT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.out, folder_.file("report.html") + "\n");
  EXPECT_NE(page().find("my/own"), std::string::npos);
  EXPECT_NE(page().find("2+2="), std::string::npos) << "a response";
}

TEST_F(ReportCommand, RolloutsAndThePageMayBeElsewhere) {
  std::filesystem::rename(folder_.file("rollouts"), folder_.file("kept"));
  const CommandRun done = report({"--rollouts", folder_.file("kept"), "--out",
                                  folder_.file("page.html"), "--step", "10", "--samples", "1"});
  EXPECT_EQ(done.code, 0) << done.error;
  EXPECT_NE(page("page.html").find("later"), std::string::npos);
  EXPECT_EQ(page("page.html").find("2+2="), std::string::npos) << "of step 1";
  EXPECT_FALSE(std::filesystem::exists(folder_.file("report.html")));
}

TEST_F(ReportCommand, WhatCannotBeShownLeavesNoPage) {
  const CommandRun no_step = report({"--step", "7"});
  EXPECT_EQ(no_step.code, 1);
  EXPECT_NE(no_step.error.find("no responses of step 7"), std::string::npos) << no_step.error;
  EXPECT_EQ(report({"--samples", "0"}).code, 2);
  std::filesystem::remove(folder_.file("metrics.jsonl"));
  const CommandRun no_run = report({});
  EXPECT_EQ(no_run.code, 1);
  EXPECT_NE(no_run.error.find(folder_.path().string()), std::string::npos) << no_run.error;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("report.html")));
}

}  // namespace
}  // namespace rl
