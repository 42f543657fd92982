// A process that is started again when it dies. The test plays the process, and turns the clock.
#include "runtime/process/kept_process.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

/// A machine that notes which processes are started, of which one lives at a time.
class OneProcessMachine final : public support::TurnedClock {
 public:
  Result<std::unique_ptr<ChildProcess>> start_process(EventLoop&, const ProcessSpec& spec,
                                                      ProcessHandlers its_handlers) override {
    ++starts;
    if (!refusal.ok()) return refusal;
    program = spec.program;
    handlers = std::move(its_handlers);
    return std::unique_ptr<ChildProcess>(std::make_unique<Child>(*this));
  }
  /// Once its handler has run, the time stands where it stood.
  void exit() {
    ASSERT_EQ(alive, 1);
    DeathCause cause;
    cause.text = "exited with code 1";
    const ProcessHandlers last = std::exchange(handlers, {});
    last.on_exit(cause);
    settle();
  }

  int starts = 0, alive = 0;
  Status refusal;
  std::string program;
  ProcessHandlers handlers;                            // of the last one
  std::optional<std::chrono::milliseconds> end_grace;  // of the end that was asked for

 private:
  class Child final : public ChildProcess {
   public:
    explicit Child(OneProcessMachine& machine) : machine_(machine) { ++machine_.alive; }
    ~Child() override { --machine_.alive; }
    std::int32_t pid() const override { return 17; }
    bool running() const override { return true; }
    void signal(int) override { ADD_FAILURE() << "it is ended by end()"; }
    void end(std::chrono::milliseconds grace) override { machine_.end_grace = grace; }
    void pause_output(bool) override {}

   private:
    OneProcessMachine& machine_;
  };
};

class KeptProcessTest : public ::testing::Test {
 protected:
  KeptProcessTest() {
    write_program("old");
    KeptProcessOptions options;
    options.name = "the autoscaler";
    options.spec.program = program_;
    options.log = folder_.file("log");
    options.restart_delay_first = 100ms;
    options.restart_delay_max = 300ms;
    kept_ = std::make_unique<KeptProcess>(loop_, options);
  }
  void write_program(const std::string& content) const {
    std::ofstream(program_ + ".next") << content;
    std::filesystem::rename(program_ + ".next", program_);
  }
  void start() {
    const Status status = kept_->start();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  /// It starts again after this time, and not before.
  void expect_start_after(std::chrono::milliseconds delay) {
    const int before = machine_.starts;
    machine_.turn(delay - 1ms);
    EXPECT_EQ(machine_.starts, before) << "too early";
    machine_.turn(1ms);
    EXPECT_EQ(machine_.starts, before + 1);
  }

  const support::TemporaryFolder folder_;
  const std::string program_ = folder_.file("program");
  OneProcessMachine machine_;
  EventLoop loop_;
  std::unique_ptr<KeptProcess> kept_;
};

TEST_F(KeptProcessTest, WhatItWritesIsInItsLog) {
  start();
  EXPECT_EQ(machine_.program, program_);
  machine_.handlers.on_output(false, "hello\n");
  machine_.exit();
  machine_.turn(100ms);
  machine_.handlers.on_output(true, "again\n");
  kept_.reset();
  EXPECT_EQ(support::content_of(folder_.file("log")), "hello\nagain\n");
}

TEST_F(KeptProcessTest, OneThatDiesIsStartedAgainLaterAndLater) {
  start();
  for (const auto delay : {100ms, 200ms, 300ms, 300ms}) {
    machine_.exit();
    EXPECT_EQ(machine_.alive, 0);
    expect_start_after(delay);
    EXPECT_EQ(machine_.alive, 1);
  }
}

TEST_F(KeptProcessTest, OneThatHasLivedForAWhileIsStartedSoonAgain) {
  start();
  for (int i = 0; i < 3; ++i) {
    machine_.exit();
    machine_.turn(1s);
  }
  machine_.turn(1min);
  machine_.exit();
  expect_start_after(100ms);
  machine_.exit();
  expect_start_after(200ms);
}

TEST_F(KeptProcessTest, AStartThatFailsIsTriedAgain) {
  start();
  machine_.exit();
  machine_.refusal = resource_exhausted("too many processes");
  expect_start_after(100ms);
  expect_start_after(200ms);
  machine_.refusal = {};
  expect_start_after(300ms);
  EXPECT_EQ(machine_.alive, 1);
}

TEST_F(KeptProcessTest, TheFirstStartSaysWhatFailed) {
  machine_.refusal = not_found("/nowhere: No such file or directory");
  const Status status = kept_->start();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.message().find("starting the autoscaler"), std::string::npos)
      << status.message();
  machine_.turn(1min);
  EXPECT_EQ(machine_.starts, 1) << "its caller decides";
}

TEST_F(KeptProcessTest, AnEndedProcessIsNotStartedAgain) {
  start();
  int done = 0;
  kept_->end(3s, [&] { ++done; });
  machine_.settle();
  EXPECT_EQ(machine_.end_grace, 3000ms);
  EXPECT_EQ(done, 0) << "it has not ended yet";
  machine_.exit();
  EXPECT_EQ(done, 1);
  machine_.turn(1min);
  EXPECT_EQ(machine_.starts, 1);
  EXPECT_EQ(done, 1);
}

TEST_F(KeptProcessTest, ItMayBeEndedBetweenTwoStarts) {
  start();
  machine_.exit();
  int done = 0;
  kept_->end(3s, [&] { ++done; });
  EXPECT_EQ(done, 0) << "never from inside of the call";
  machine_.settle();
  EXPECT_EQ(done, 1);
  machine_.turn(1min);
  EXPECT_EQ(machine_.starts, 1);
}

TEST_F(KeptProcessTest, NothingIsStartedOnceItIsGone) {
  start();
  machine_.exit();
  kept_.reset();
  machine_.turn(1min);
  EXPECT_EQ(machine_.starts, 1);
}

TEST_F(KeptProcessTest, AProgramThatIsReplacedMeanwhileIsStartedAsItWas) {
  start();
  write_program("new");
  machine_.exit();
  machine_.turn(100ms);
  EXPECT_EQ(support::content_of(machine_.program), "old");
}

}  // namespace
}  // namespace runtime
