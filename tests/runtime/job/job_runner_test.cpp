#include "runtime/job/job_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/transport/token_key.h"
#include "tests/runtime/node/control_inbox.h"
#include "tests/runtime/transport/channel_pair.h"
#include "tests/support/file_bytes.h"
#include "tests/support/played_processes.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class JobRunnerTest : public ::testing::Test {
 protected:
  struct Ended {
    JobId job;
    JobOutcome outcome;
    DeathCause cause;
  };

  JobRunnerTest() {
    std::filesystem::create_directory(folder_.path() / "logs");
    options_.node_address = "10.0.0.1:1";
    options_.session_dir = folder_.path().string();
    options_.token = "secret";
    options_.token_file = "/run/token";
    start_.job = job_;
    start_.argv = {"train", "--fast"};
    inbox_.serve(submitter_.far);
  }
  ~JobRunnerTest() override {
    runner_.reset();
    submitter_.close();
    clock_.settle();
  }
  /// With the options that are set by now.
  JobRunner& runner() {
    if (!runner_)
      runner_ = std::make_unique<JobRunner>(
          loop_, options_, [this](JobId job, JobOutcome outcome, const DeathCause& cause) {
            ended_.push_back({job, outcome, cause});
          });
    return *runner_;
  }
  void start() {
    const Result<std::int32_t> pid = runner().start(start_);
    EXPECT_TRUE(pid.ok()) << pid.status().to_string();
  }
  void start(JobId job, std::shared_ptr<Channel> submitter = nullptr) {
    start_.job = job;
    start_.submitter = std::move(submitter);
    start();
  }
  const support::PlayedProcesses::Process& process(std::size_t at = 0) {
    return *clock_.processes.at(at);
  }
  bool has_variable(const std::string& variable) {
    return std::ranges::count(process().spec.env, variable) == 1;
  }
  /// What the submitter has got of the job's output.
  std::string output() const {
    std::string bytes;
    for (const ControlEvent& event : inbox_.events())
      if (const auto* output = std::get_if<control::JobOutput>(&event)) bytes += output->bytes;
    return bytes;
  }
  std::string log(JobId job) const {
    return support::content_of(folder_.path() / "logs" / ("job-" + job.hex() + ".log"));
  }

  // Made by chance, as the clock's simulation has none.
  const JobId job_ = JobId::random(), other_ = JobId::random(), third_ = JobId::random();
  support::TemporaryFolder folder_;
  support::PlayedProcesses clock_;
  EventLoop loop_;
  ChannelPair submitter_{loop_, peer_of(Role::kTool)};
  ControlInbox inbox_;
  JobRunnerOptions options_;
  JobStart start_;
  std::vector<Ended> ended_;
  std::unique_ptr<JobRunner> runner_;
};

TEST_F(JobRunnerTest, RunsTheProgramInItsClustersName) {
  start_.working_dir = "/work";
  start_.env = {{"EPOCHS", "3"}};
  start();
  const ProcessSpec& spec = process().spec;
  EXPECT_EQ(spec.program, "train");
  EXPECT_EQ(spec.argv, (std::vector<std::string>{"train", "--fast"}));
  EXPECT_EQ(spec.working_dir, "/work");
  EXPECT_TRUE(spec.supervised) << "nothing that it starts outlives it";
  EXPECT_TRUE(has_variable("EPOCHS=3"));
  EXPECT_TRUE(has_variable("STARLING_ADDRESS=10.0.0.1:1"));
  EXPECT_TRUE(has_variable("STARLING_TOKEN_FILE=/run/token"));
  EXPECT_TRUE(has_variable("STARLING_JOB=" + job_.hex()));
  EXPECT_TRUE(runner().runs(job_));
  EXPECT_EQ(runner().running(), std::vector{job_});
}

TEST_F(JobRunnerTest, AProgramThatWasBroughtAlongIsRunUnderItsName) {
  start_.program = "/cache/7f3a";
  start();
  EXPECT_EQ(process().spec.program, "/cache/7f3a");
  EXPECT_EQ(process().spec.argv[0], "train");
}

TEST_F(JobRunnerTest, AnotherUsersJobGetsWhatItsSubmitterMayShow) {
  start_.user = JobUser{1007, 1007, {}, "alice", "/home/alice", "/bin/sh"};
  start();
  EXPECT_TRUE(has_variable("STARLING_TOKEN=" + submitter_token("secret")));
  for (const std::string& variable : process().spec.env)
    EXPECT_EQ(variable.find("STARLING_TOKEN_FILE"), std::string::npos) << variable;
  EXPECT_EQ(process().spec.user->name, "alice");
}

TEST_F(JobRunnerTest, TellsTheSubmitterWhatItWritesAndHowItEnds) {
  start(job_, submitter_.near);
  clock_.write(0, "step 1\n");
  clock_.write(0, "careful\n", true);
  ASSERT_EQ(inbox_.events().size(), 2u);
  const auto& warning = std::get<control::JobOutput>(inbox_.events()[1]);
  EXPECT_EQ(warning, (control::JobOutput{job_, true, "careful\n"}));
  EXPECT_EQ(output(), "step 1\ncareful\n");
  clock_.exit(0, 0);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].job, job_);
  EXPECT_EQ(ended_[0].outcome, JobOutcome::kSucceeded);
  EXPECT_EQ(ended_[0].cause.output_tail, "") << "only failures are explained";
  ASSERT_EQ(inbox_.events().size(), 3u);
  EXPECT_EQ(std::get<control::JobExited>(inbox_.events()[2]),
            (control::JobExited{job_, ended_[0].cause}));
  EXPECT_FALSE(runner().runs(job_));
  EXPECT_EQ(log(job_), "step 1\ncareful\n");
}

TEST_F(JobRunnerTest, AFailureHasTheEndOfTheOutput) {
  start();
  for (int line = 1; line <= 30; ++line) clock_.write(0, "line " + std::to_string(line) + "\n");
  clock_.exit(0, 3);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].outcome, JobOutcome::kFailed);
  EXPECT_EQ(ended_[0].cause.text, "exited with code 3");
  EXPECT_TRUE(ended_[0].cause.output_tail.starts_with("line 11\n")) << "twenty lines";
  EXPECT_TRUE(ended_[0].cause.output_tail.ends_with("line 30"));
  start(other_);
  clock_.write(1, std::string(10'000, 'x') + "the end");
  clock_.kill(1, 11, "killed by SIGSEGV");
  EXPECT_EQ(ended_[1].outcome, JobOutcome::kFailed);
  EXPECT_EQ(ended_[1].cause.output_tail.size(), 4096u) << "as much as a record keeps";
  EXPECT_TRUE(ended_[1].cause.output_tail.ends_with("the end"));
}

TEST_F(JobRunnerTest, ACancelledJobHasTimeUntilItIsCancelledAgain) {
  start();
  EXPECT_TRUE(runner().cancel(job_, "cancelled on request").ok());
  EXPECT_EQ(process().ends, std::vector<std::chrono::milliseconds>{options_.cancel_grace});
  EXPECT_TRUE(runner().runs(job_)) << "until it has ended";
  EXPECT_TRUE(runner().cancel(job_, "another reason").ok());
  EXPECT_EQ(process().ends.back(), 0ms);
  clock_.exit(0, 0);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].outcome, JobOutcome::kStopped) << "whatever its exit code";
  EXPECT_EQ(ended_[0].cause.text, "cancelled on request (exited with code 0)");
  EXPECT_EQ(runner().cancel(job_, "late").code(), ErrorCode::kNotFound);
}

TEST_F(JobRunnerTest, JobsEndWithWhoSubmittedThem) {
  start(job_, submitter_.near);
  start(other_);
  runner().on_submitter_closed(*submitter_.near);
  EXPECT_EQ(process(0).ends.size(), 1u);
  EXPECT_TRUE(process(1).ends.empty());
  submitter_.close();
  clock_.settle();
  clock_.write(0, "its last words\n");
  clock_.exit(0, 1);
  EXPECT_EQ(ended_[0].cause.text, "its submitter is gone (exited with code 1)");
  EXPECT_EQ(log(job_), "its last words\n");
}

TEST_F(JobRunnerTest, RunsSoManyAtATime) {
  options_.jobs_max = 2;
  start(job_);
  EXPECT_TRUE(runner().check_room().ok());
  start(other_);
  EXPECT_EQ(runner().check_room().code(), ErrorCode::kResourceExhausted);
  start_.job = third_;
  EXPECT_EQ(runner().start(start_).status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(clock_.processes.size(), 2u);
  clock_.exit(0, 0);
  start(third_);
}

TEST_F(JobRunnerTest, WhatCannotStartIsNoJob) {
  clock_.refusal = not_found("train: no such program");
  EXPECT_EQ(runner().start(start_).status(), clock_.refusal);
  clock_.refusal = {};
  for (const std::vector<std::string>& argv : {std::vector<std::string>(), {""}}) {
    start_.argv = argv;
    EXPECT_EQ(runner().start(start_).status().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(runner().runs(job_));
  EXPECT_TRUE(ended_.empty());
  EXPECT_TRUE(clock_.processes.empty());
}

TEST_F(JobRunnerTest, EndsAllAndSaysWhenTheLastIsGone) {
  int done = 0;
  runner().end_all([&] { ++done; });
  EXPECT_EQ(done, 1) << "there is none";
  start(job_);
  start(other_);
  EXPECT_TRUE(runner().cancel(other_, "cancelled on request").ok());
  runner().end_all([&] { ++done; });
  EXPECT_EQ(process(0).ends, std::vector<std::chrono::milliseconds>{options_.cancel_grace});
  clock_.exit(0, 0);
  EXPECT_EQ(done, 1);
  clock_.exit(1, 0);
  EXPECT_EQ(done, 2);
  EXPECT_EQ(ended_[0].cause.text, "its node was stopped (exited with code 0)");
  EXPECT_EQ(ended_[1].cause.text, "cancelled on request (exited with code 0)");
  start(third_);
  clock_.exit(2, 0);
  EXPECT_EQ(done, 2) << "it was told once";
}

TEST_F(JobRunnerTest, AJobWaitsForASubmitterThatDoesNotTakeItsOutput) {
  options_.queued_bytes_max = 64 << 10;
  submitter_.far->pause_receiving();
  start(job_, submitter_.near);
  const std::string much(4 << 20, 'x');  // more than sockets take
  clock_.write(0, "a little\n");
  EXPECT_FALSE(process().is_paused);
  clock_.write(0, much);
  EXPECT_TRUE(process().is_paused) << "its pipe fills up";
  submitter_.far->resume_receiving();
  EXPECT_TRUE(support::eventually([&] {
    clock_.settle();
    return output().size() == much.size() + 9;
  }));
  clock_.settle();
  EXPECT_FALSE(process().is_paused);
}

TEST_F(JobRunnerTest, AJobThatIsToEndWaitsForNoSubmitter) {
  options_.queued_bytes_max = 64 << 10;
  submitter_.far->pause_receiving();
  start(job_, submitter_.near);
  const std::string much(4 << 20, 'x');
  clock_.write(0, much);
  EXPECT_TRUE(process().is_paused);
  EXPECT_TRUE(runner().cancel(job_, "cancelled on request").ok());
  EXPECT_FALSE(process().is_paused);
  clock_.write(0, "its last words");
  EXPECT_FALSE(process().is_paused);
  EXPECT_TRUE(log(job_).ends_with("its last words")) << "the log has it";
  submitter_.far->resume_receiving();
  EXPECT_TRUE(support::eventually([&] {
    clock_.settle();
    return output().size() >= much.size();
  }));
  EXPECT_EQ(output(), much);
  clock_.exit(0, 1);
  EXPECT_TRUE(ended_.at(0).cause.output_tail.ends_with("its last words"));
}

}  // namespace
}  // namespace runtime
