#include "placement/app/cli_submit.h"

#include <unistd.h>

#include <csignal>
#include <future>

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

namespace control = runtime::control;

class SubmitTest : public ::testing::Test {
 protected:
  SubmitTest() {
    options_.address = cluster_.address();
    options_.command = {"train", "fast"};
    cluster_.on<control::OfferFiles>([](const auto&) { return control::FilesWanted(); });
    cluster_.on<control::SubmitJob>([this](const control::SubmitJob& request) {
      submitted_.push_back(request);
      for (const runtime::ControlEvent& event : events_) cluster_.node().tell(event);
      return job_;
    });
  }
  Said submit() {
    return said_by([&] { return submit_command(options_); });
  }
  void writes(bool is_stderr, const std::string& text) {
    events_.push_back(control::JobOutput{job_, is_stderr, text});
  }
  runtime::ControlEvent ended(const std::string& text, int exit_code, int signal = 0) const {
    runtime::DeathCause cause;
    cause.text = text;
    cause.exit_code = exit_code;
    cause.signal = signal;
    return control::JobExited{job_, cause};
  }
  /// The job gets its place on that node.
  void place_on(runtime::NodeId node, const std::string& address) {
    options_.amounts.cpus = 2;
    cluster_.add_node(node, address);
    cluster_.on<control::QueueJob>([this, node](const control::QueueJob& request) {
      queued_ = request;
      return placed(node);
    });
  }
  static runtime::GroupState placed(runtime::NodeId node) {
    runtime::GroupState group;
    group.placed = true;
    group.nodes = {node};
    return group;
  }

  FakeCluster cluster_;
  SubmitOptions options_;
  const runtime::JobId job_ = runtime::JobId::random();
  std::vector<runtime::ControlEvent> events_;  // after the job began
  std::vector<control::SubmitJob> submitted_;
  control::QueueJob queued_;
};

TEST_F(SubmitTest, TheJobsOutputAndExitCodeAreTheCommands) {
  options_.env = {"SEED=7", "FLAGS=a=b"};
  writes(false, "loss 0.5\n");
  writes(true, "careful\n");
  events_.push_back(ended("exited with code 3", 3));
  const Said said = submit();
  EXPECT_EQ(said.code, 3);
  EXPECT_EQ(said.out, "loss 0.5\n");
  EXPECT_EQ(said.err, "careful\nerror: job " + job_.short_hex() +
                          " failed: exited with code 3 (starling job logs " + job_.short_hex() +
                          ")\n");
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].argv, options_.command);
  EXPECT_EQ(submitted_[0].env, (runtime::Environment{{"SEED", "7"}, {"FLAGS", "a=b"}}));
  EXPECT_FALSE(submitted_[0].detached);
}

TEST_F(SubmitTest, ASignalsNumberIsAddedTo128) {
  events_ = {ended("killed by SIGKILL", -1, SIGKILL)};
  EXPECT_EQ(submit().code, 128 + SIGKILL);
  events_ = {ended("exited with code 0", 0)};
  const Said said = submit();
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out + said.err, "");
}

TEST_F(SubmitTest, AnInterruptEndsTheJobAndNotTheCommandAlone) {
  std::vector<runtime::JobId> cancelled;
  cluster_.on<control::SubmitJob>([this](const auto&) {
    ::kill(::getpid(), SIGINT);
    return job_;
  });
  cluster_.on<control::CancelJob>([&](const control::CancelJob& request) {
    cancelled.push_back(request.job);
    cluster_.node().tell(ended("ended by request", 0));
    return std::monostate();
  });
  const Said said = submit();
  EXPECT_EQ(said.code, 128 + SIGINT);
  EXPECT_EQ(cancelled, (std::vector<runtime::JobId>{job_}));
  expect_said(said.err, {"ending the job"});
}

TEST_F(SubmitTest, ADetachedJobIsLeftAlone) {
  options_.detach = true;
  const Said said = submit();
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, job_.hex() + "\n");
  EXPECT_EQ(said.err, "");
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_TRUE(submitted_[0].detached);
}

TEST_F(SubmitTest, ANodeThatStopsIsNoEndOfTheJobWithoutAWord) {
  events_ = {control::Shutdown{runtime::unavailable("the node stops: interrupted")}};
  const Said said = submit();
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.err, "error: the job's node: the node stops: interrupted\n");
}

TEST_F(SubmitTest, NothingIsSubmittedByAMistake) {
  const auto expect_mistake = [&](const std::vector<std::string>& named) {
    const Said said = submit();
    EXPECT_EQ(said.code, 1);
    EXPECT_EQ(said.out, "");
    expect_said(said.err, named);
  };
  options_.detach = true;  // so that what goes through ends
  for (const char* line : {"SEED", "=7"}) {
    options_.env = {line};
    expect_mistake({"--env is not KEY=VALUE: " + std::string(line)});
  }
  for (const char* name : {"STARLING_ADDRESS", "STARLING_TOKEN"}) {
    options_.env = {name + std::string("=x")};
    expect_mistake({"--env " + std::string(name)});
  }
  options_.env = {};
  options_.command = {};
  expect_mistake({"no command to run"});
  EXPECT_TRUE(submitted_.empty());
}

TEST_F(SubmitTest, ANodeThatCannotBeReachedIsReplaced) {
  const runtime::NodeId gone = runtime::NodeId::random();
  place_on(gone, "127.0.0.1:1");
  cluster_.on<control::QueryGroup>([this](const auto&) { return placed(cluster_.node().id); });
  events_ = {ended("exited with code 0", 0)};
  const Said said = submit();
  EXPECT_EQ(said.code, 0);
  expect_said(said.err, {"job " + queued_.job.short_hex() + " has not started",
                         "node " + gone.short_hex() + " at 127.0.0.1:1"});
  ASSERT_EQ(submitted_.size(), 1u);
  EXPECT_EQ(submitted_[0].job, queued_.job) << "the one that has waited";
  EXPECT_EQ(submitted_[0].place, queued_.place);
}

TEST_F(SubmitTest, WhatMayHaveBegunIsNotBegunAgain) {
  runtime::FakeNode far([](const auto& body, runtime::ControlAnswerer& answer) {
    if (!std::holds_alternative<control::OfferFiles>(body)) return false;
    answer(runtime::ControlAnswer(control::FilesWanted()));
    return true;
  });
  place_on(far.id, far.endpoint().to_string());
  cluster_.on<control::QueryGroup>([this](const auto&) { return placed(cluster_.node().id); });
  events_ = {ended("exited with code 0", 0)};
  auto said = std::async(std::launch::async, [&] { return submit(); });
  const auto begun = far.next<control::SubmitJob>();
  far.close();  // with the answer on its way, for all that the command knows
  EXPECT_EQ(said.get().code, 1);
  EXPECT_EQ(begun.job, queued_.job);
  EXPECT_TRUE(submitted_.empty()) << "there would be two of it";
}

}  // namespace
}  // namespace placement
