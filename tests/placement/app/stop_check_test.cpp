#include "placement/app/stop_check.h"

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

class StopCheck : public ::testing::Test {
 protected:
  /// Whether it may stop: 1, 0; -1: an error.
  Said check(bool force, runtime::NodeId node = {}) {
    return said_by([&] {
      runtime::ClusterAddress at;
      at.address = cluster_.address();
      at.token = runtime::FakeNode::kToken;
      const auto may = may_end_jobs(loop_, at, node, force);
      return may.ok() ? (*may ? 1 : 0) : -1;
    });
  }
  runtime::JobInfo& add_job(const char* command, std::int32_t pid = 12) {
    runtime::JobInfo job;
    job.job = runtime::JobId::random();
    job.node = cluster_.node().id;
    job.command = command;
    job.pid = pid;
    return cluster_.state.jobs.emplace_back(job);
  }

  FakeCluster cluster_;
  runtime::EventLoop loop_;
};

TEST_F(StopCheck, WithoutJobsNothingIsSaid) {
  add_job("done").running = false;
  const Said said = check(false);
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out + said.err, "");
}

TEST_F(StopCheck, NamesWhatWouldBeEndedWithTheCure) {
  const std::string first = add_job("./train\nnow").job.short_hex();
  const std::string second = add_job("./eval", 0).job.short_hex();
  const Said said = check(false);
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, "");
  expect_said(said.err, {"2 jobs run at " + cluster_.address(), "starling job stop ID",
                         "starling stop --force", "job " + first + "  ./train", "(pid 12",
                         "job " + second + "  ./eval  (has not begun)"});
  const Said forced = check(true);
  EXPECT_EQ(forced.code, 1);
  EXPECT_EQ(forced.err, "");
  expect_said(forced.out, {"ending job " + first, "ending job " + second});
}

TEST_F(StopCheck, JobsOfOtherNodesGoOn) {
  add_job("./train");
  EXPECT_EQ(check(false, runtime::NodeId::random()).code, 1);
  EXPECT_EQ(check(false, cluster_.node().id).code, 0);
}

TEST_F(StopCheck, AJobThatIsJustEndingHoldsNothingUp) {
  add_job("./train");
  int looks = 0;
  cluster_.on<runtime::control::QueryCluster>([&](const auto&) {
    if (++looks == 3) cluster_.state.jobs.front().running = false;
    return cluster_.state;
  });
  const Said said = check(false);
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out + said.err, "");
  EXPECT_EQ(looks, 3);
}

TEST_F(StopCheck, WhatIsNotKnownIsNotEnded) {
  cluster_.on<runtime::control::QueryCluster>(
      [](const auto&) { return runtime::unavailable("the head is away"); });
  const Said said = check(false);
  EXPECT_EQ(said.code, 0);
  expect_said(said.err, {"whether jobs run at " + cluster_.address(), "the head is away",
                         "starling stop --force"});
  EXPECT_EQ(check(true).code, 1);
}

TEST_F(StopCheck, ANodeThatIsNotThereIsAnErrorOfTheCaller) {
  cluster_.node().close();
  const Said said = check(false);
  EXPECT_EQ(said.code, -1);
  EXPECT_EQ(said.out + said.err, "");
}

}  // namespace
}  // namespace placement
