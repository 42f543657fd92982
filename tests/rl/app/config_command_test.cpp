#include "rl/app/config_command.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"
#include "tests/rl/app/command_run.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class ConfigCommandTest : public ::testing::Test {
 protected:
  CommandRun run(std::vector<std::string> arguments) {
    const ConfigCommand command{
        .keys = sft_keys(),
        .description = "Learns.",
        .key_names = "names",
        .example = "starling sft",
        .dry_run =
            [&](const Config& config, std::ostream& out, std::span<const NodeRoom> nodes) {
              ++dry_runs_;
              rate_ = config.get_float("optim.lr").value_or(-1);
              nodes_.assign(nodes.begin(), nodes.end());
              out << "the plan\n";
              return planned_;
            },
        .run =
            [&](runtime::Runtime&, const Config&) {
              ADD_FAILURE() << "it is run";
              return runtime::Status();
            }};
    arguments.insert(arguments.begin(), "sft");
    return run_here(
        [&](int argc, char** argv) { return run_config_command(runtime_, command, argc, argv); },
        std::move(arguments));
  }

  const support::ScopedVariable address_{"STARLING_ADDRESS", nullptr};
  char name_[4] = "sft";
  char* arguments_[2] = {name_, nullptr};
  runtime::Runtime runtime_{1, arguments_};  // it is not started
  runtime::Status planned_;                  // what the dry run returns
  int dry_runs_ = 0;
  double rate_ = 0;
  std::vector<NodeRoom> nodes_ = {NodeRoom{}};
};

TEST_F(ConfigCommandTest, AWrongConfigurationIsRefusedBeforeAnythingElse) {
  for (const char* how : {"--private", "--dry-run", "--config-print"}) {
    const CommandRun wrong = run({how, "optim.lrr=1"});
    EXPECT_EQ(wrong.code, 1) << how;
    EXPECT_NE(wrong.error.find("optim.lrr"), std::string::npos) << wrong.error;
    EXPECT_EQ(wrong.out, "");
  }
  EXPECT_EQ(run({"--private", "--config", "/no/such.yaml"}).code, 1);
  EXPECT_EQ(run({"--private", "--address", "127.0.0.1:1"}).code, 2);
  EXPECT_EQ(dry_runs_, 0);
}

TEST_F(ConfigCommandTest, AConfigurationIsPrintedWithoutAnyCluster) {
  const CommandRun printed = run({"--config-print", "--address", "nowhere", "optim.lr=0.125"});
  EXPECT_EQ(printed.code, 0) << printed.error;
  EXPECT_NE(printed.out.find("lr: 0.125"), std::string::npos) << printed.out;
  EXPECT_EQ(dry_runs_, 0);
}

TEST_F(ConfigCommandTest, ADryRunIsOfTheNodesThatTheRunWouldHave) {
  const CommandRun planned = run({"--dry-run", "--private", "optim.lr=0.125"});
  EXPECT_EQ(planned.code, 0) << planned.error;
  EXPECT_TRUE(planned.out.starts_with("the plan\nthe run has its own cluster, on this machine"))
      << planned.out;
  EXPECT_EQ(rate_, 0.125);
  ASSERT_EQ(nodes_.size(), 1U);
  EXPECT_TRUE(nodes_[0].is_private);
  EXPECT_GT(nodes_[0].cpus, 0);
}

TEST_F(ConfigCommandTest, APlanThatDoesNotFitIsAFailureBehindThePlan) {
  planned_ = runtime::resource_exhausted("too large");
  const CommandRun planned = run({"--dry-run", "--private"});
  EXPECT_EQ(planned.code, 1);
  EXPECT_EQ(planned.error, "error: too large\n");
  EXPECT_NE(planned.out.find("the run has its own cluster"), std::string::npos) << planned.out;
}

TEST_F(ConfigCommandTest, WithoutItsClusterARunIsPlannedAndNotRun) {
  const CommandRun planned = run({"--dry-run", "--address", "nowhere"});
  EXPECT_EQ(planned.code, 0) << planned.error;
  EXPECT_TRUE(planned.out.starts_with("the plan\nno cluster: ")) << planned.out;
  EXPECT_TRUE(nodes_.empty());
  const CommandRun refused = run({"--address", "nowhere"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.error.find("nowhere"), std::string::npos) << refused.error;
}

}  // namespace
}  // namespace rl
