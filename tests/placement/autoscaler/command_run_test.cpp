#include "placement/autoscaler/command_run.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/support/played_processes.h"

namespace placement {
namespace {

using namespace std::chrono_literals;

class CommandRunTest : public ::testing::Test {
 protected:
  void start(std::chrono::milliseconds limit = 10s) {
    runtime::ProcessSpec spec;
    spec.program = "/opt/nodes.sh";
    spec.argv = {"/opt/nodes.sh", "list"};
    run_ = std::make_unique<CommandRun>(loop_, spec, limit, [this](CommandOutcome outcome) {
      ++ends_;
      outcome_ = std::move(outcome);
    });
  }

  support::PlayedProcesses clock_;
  runtime::EventLoop loop_;
  int ends_ = 0;
  CommandOutcome outcome_;
  std::unique_ptr<CommandRun> run_;
};

TEST_F(CommandRunTest, HasWhatTheCommandWroteAndItsExitCode) {
  start();
  ASSERT_EQ(clock_.processes.size(), 1u);
  EXPECT_EQ(clock_.processes[0]->spec.argv[1], "list");
  clock_.write(0, "[\"cpu-");
  clock_.write(0, "1\"]\n");
  for (char line = 'a'; line <= 'g'; ++line) clock_.write(0, std::string(1, line) + "\n", true);
  EXPECT_EQ(ends_, 0);
  clock_.exit(0, 3);
  ASSERT_EQ(ends_, 1);
  EXPECT_TRUE(outcome_.status.ok()) << "it ran to its end";
  EXPECT_EQ(outcome_.exit_code, 3);
  EXPECT_EQ(outcome_.output, "[\"cpu-1\"]\n");
  EXPECT_EQ(outcome_.error_tail, "c\nd\ne\nf\ng") << "the last five lines";
}

TEST_F(CommandRunTest, OneThatCannotStartSaysWhyLater) {
  clock_.refusal = runtime::not_found("/opt/nodes.sh: no such file");
  start();
  EXPECT_EQ(ends_, 0) << "never from inside of the call";
  clock_.settle();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(outcome_.status, clock_.refusal);
  clock_.turn(1h);
  EXPECT_EQ(ends_, 1);
}

TEST_F(CommandRunTest, ASignalIsAFailureOfTheCommand) {
  start();
  clock_.kill(0, 9, "killed by SIGKILL");
  EXPECT_EQ(outcome_.status, runtime::task_failed("/opt/nodes.sh was killed by SIGKILL"));
}

TEST_F(CommandRunTest, IsEndedAtItsLimit) {
  start(1500ms);
  clock_.turn(1499ms);
  EXPECT_TRUE(clock_.processes[0]->ends.empty());
  clock_.turn(1ms);
  ASSERT_EQ(clock_.processes[0]->ends.size(), 1u);
  EXPECT_GT(clock_.processes[0]->ends[0], 0s) << "it may clean up";
  EXPECT_EQ(ends_, 0) << "it has not ended yet";
  clock_.exit(0, 0);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(outcome_.status.code(), runtime::ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(outcome_.status.message(), "/opt/nodes.sh ran for more than 1.500 s and was ended");
}

TEST_F(CommandRunTest, AnEndInTimeStopsTheClock) {
  start(1s);
  clock_.exit(0, 0);
  clock_.turn(1h);
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(clock_.processes[0]->ends.empty());
}

TEST_F(CommandRunTest, ItsOutputHasABound) {
  start();
  clock_.write(0, std::string(CommandRun::kOutputBytesMax - 1, 'x'));
  EXPECT_TRUE(clock_.processes[0]->ends.empty());
  clock_.write(0, "yz");
  EXPECT_EQ(clock_.processes[0]->ends.size(), 1u);
  clock_.write(0, "more");
  EXPECT_EQ(clock_.processes[0]->ends.size(), 1u) << "it was told once";
  clock_.exit(0, 0);
  EXPECT_EQ(outcome_.status.code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome_.output.size(), CommandRun::kOutputBytesMax);
  EXPECT_EQ(outcome_.output.back(), 'y');
}

TEST_F(CommandRunTest, MayGoInItsHandlerAndBeforeItsEnd) {
  runtime::ProcessSpec spec;
  spec.program = "a";
  std::unique_ptr<CommandRun> run;
  run = std::make_unique<CommandRun>(loop_, spec, 1s, [&](const CommandOutcome&) {
    ++ends_;
    run.reset();
  });
  clock_.exit(0, 0);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(run, nullptr);
  start(1s);
  run_.reset();
  EXPECT_FALSE(clock_.processes[1]->is_kept) << "the command is killed";
  clock_.turn(1h);
  EXPECT_EQ(ends_, 1);
}

TEST_F(CommandRunTest, OneThatCouldNotStartMayGoBeforeItSaysSo) {
  clock_.refusal = runtime::not_found("no such file");
  start();
  run_.reset();
  clock_.settle();
  EXPECT_EQ(ends_, 0);
}

}  // namespace
}  // namespace placement
