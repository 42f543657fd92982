#include "placement/app/cli_logs.h"

#include <algorithm>

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

namespace control = runtime::control;

/// The node's log is read in the pieces that the test gives, and has no more after them.
class LogsCommand : public ::testing::Test {
 protected:
  using Chunk = control::LogChunk;

  LogsCommand() {
    cluster_.on<control::ReadLog>([this](const control::ReadLog& request) -> Answer {
      asked_.push_back(request);
      if (pieces_.empty()) return Chunk{};
      const Answer first = pieces_.front();
      pieces_.erase(pieces_.begin());
      return first;
    });
  }
  runtime::ActorState& add_actor(const char* name, runtime::NodeId node) {
    runtime::ActorState& actor = cluster_.add_actor("", name);
    actor.worker = runtime::WorkerId::random();
    actor.node = node;
    actor.phase = runtime::ActorPhase::kAlive;
    return actor;
  }
  runtime::JobInfo& add_job() {
    runtime::JobInfo job;
    job.job = runtime::JobId::random();
    job.node = cluster_.node().id;
    job.submitted = true;
    job.pid = 12;
    return cluster_.state.jobs.emplace_back(job);
  }
  Said logs(const std::string& what, bool follow = false) {
    return said_by([&] { return logs_command(cluster_.address(), what, follow); });
  }
  void expect_refused(const std::string& what, const std::vector<std::string>& parts) {
    const Said said = logs(what);
    EXPECT_EQ(said.code, 1) << what;
    EXPECT_EQ(said.out, "");
    expect_said(said.err, parts);
  }

  using Answer = runtime::Result<Chunk>;
  FakeCluster cluster_;
  std::vector<Answer> pieces_;
  std::vector<control::ReadLog> asked_;
};

TEST_F(LogsCommand, ReadsOnWhereThePieceBeforeEnded) {
  pieces_ = {Chunk{"one\n", 4, 1, 0}, Chunk{"two\n", 3, 2, 4}};
  const Said said = logs("");
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, "one\ntwo\n");
  EXPECT_EQ(said.err, "");
  EXPECT_EQ(asked_, (std::vector<control::ReadLog>{{"", 0, 0}, {"", 4, 1}, {"", 3, 2}}));
}

TEST_F(LogsCommand, WhatWasRotatedAwayIsSaidOnce) {
  pieces_ = {Chunk{"late\n", 5, 1, 100}, Chunk{"next\n", 10, 1, 105}, Chunk{"last\n", 5, 2, 210}};
  const Said said = logs("");
  EXPECT_EQ(said.out, "late\nnext\nlast\n");
  const std::string whose = "note: the log of node " + cluster_.node().id.short_hex();
  expect_said(said.err, {whose + " begins after its first 100 bytes",
                         whose + " lacks, from byte 110 on, 100 bytes"});
  EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 2) << said.err;
}

TEST_F(LogsCommand, AnActorsLogIsReadFromItsNode) {
  std::string name;
  runtime::FakeNode far([&](const auto& body, runtime::ControlAnswerer& answer) {
    const auto* request = std::get_if<control::ReadLog>(&body);
    if (request == nullptr) return false;
    const std::string text = std::exchange(name, request->name).empty() ? "far\n" : "";
    answer(runtime::ControlAnswer(Chunk{text, 4, 1, 0}));
    return true;
  });
  cluster_.add_node(far.id, far.endpoint().to_string());
  const std::string worker = add_actor("echo", far.id).worker.hex();
  const Said said = logs("echo");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "far\n");
  EXPECT_EQ(name, "worker-" + worker + ".log");
}

TEST_F(LogsCommand, ANameIsThatOfTheLiving) {
  const runtime::NodeId here = cluster_.node().id;
  add_actor("echo", here).phase = runtime::ActorPhase::kDead;
  const std::string worker = add_actor("echo", here).worker.hex();
  EXPECT_EQ(logs("echo").code, 0);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].name, "worker-" + worker + ".log");
  cluster_.state.actors[1].phase = runtime::ActorPhase::kDead;
  expect_refused("echo", {"'echo' may be actor", cluster_.state.actors[0].actor.short_hex(),
                          cluster_.state.actors[1].actor.short_hex(), "give more digits"});
}

TEST_F(LogsCommand, ANameThatIsAlsoTheFirstDigitsOfAnIdIsTheName) {
  const runtime::NodeId here = cluster_.node().id;
  const std::string digits = add_actor("echo", here).actor.hex().substr(0, 6);
  const std::string worker = add_actor(digits.c_str(), here).worker.hex();
  EXPECT_EQ(logs(digits).code, 0);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].name, "worker-" + worker + ".log");
}

TEST_F(LogsCommand, WhatHasNoLogSaysWhy) {
  add_actor("learner", {});
  expect_refused("learner", {"has not been started"});
  expect_refused("learnr", {"called 'learnr'", "learner"});
  const runtime::NodeId gone = runtime::NodeId::random();
  add_actor("lost", gone);
  expect_refused("lost", {"the node of actor", "is gone, and its logs with it"});
  add_job().submitted = false;
  expect_refused(cluster_.state.jobs[0].job.hex(), {"was not submitted"});
  const std::string waits = add_job().job.hex();
  cluster_.state.jobs[1].pid = 0;
  expect_refused(waits, {"job " + waits.substr(0, 8) + " has not begun", "starling why"});
  EXPECT_TRUE(asked_.empty());
}

TEST_F(LogsCommand, FollowsUntilItsJobHasEndedToTheLastWord) {
  const std::string job = add_job().job.hex();
  std::vector<bool> runs{true, false};
  cluster_.on<control::QueryJob>([&](const auto&) {
    runtime::JobInfo info;
    info.running = runs.front();
    runs.erase(runs.begin());
    return info;
  });
  pieces_ = {Chunk{"a\n", 2, 1, 0}, Chunk{"", 2, 1, 2}, Chunk{"b\n", 4, 1, 2}, Chunk{"", 4, 1, 4},
             Chunk{"c\n", 6, 1, 4}};
  const Said said = logs(job, true);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "a\nb\nc\n");
  EXPECT_EQ(asked_[0].name, "job-" + job + ".log");
  EXPECT_TRUE(runs.empty());
}

TEST_F(LogsCommand, FollowsAJobThatHasNotBegun) {
  add_job().pid = 0;
  cluster_.state.jobs[0].node = {};
  int looks = 0;
  cluster_.on<control::QueryCluster>([&](const auto&) {
    if (++looks == 3) {
      cluster_.state.jobs[0].pid = 12;
      cluster_.state.jobs[0].node = cluster_.node().id;
    }
    return cluster_.state;
  });
  cluster_.on<control::QueryJob>([](const auto&) { return runtime::not_found("forgotten"); });
  pieces_ = {Chunk{"begun\n", 6, 1, 0}};
  EXPECT_EQ(logs(cluster_.state.jobs[0].job.hex(), true).out, "begun\n");
  EXPECT_EQ(looks, 3);
}

TEST_F(LogsCommand, ALogThatIsNotThereIsNoErrorAndIsSaidOnce) {
  const std::string job = add_job().job.hex();
  cluster_.on<control::QueryJob>([](const auto&) { return runtime::not_found("forgotten"); });
  pieces_ = {runtime::not_found("no such file"), runtime::not_found("no such file")};
  const Said said = logs(job, true);
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.err, "note: job " + job.substr(0, 8) +
                          " has written nothing, or its log was removed for room\n");
  pieces_ = {runtime::not_found("the node's log is gone")};
  expect_refused("", {"the node's log is gone"});
  pieces_ = {runtime::unavailable("the disk is away")};
  expect_refused(job, {"the disk is away"});
}

}  // namespace
}  // namespace placement
