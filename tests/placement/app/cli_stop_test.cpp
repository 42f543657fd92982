#include "placement/app/cli_stop.h"

#include <optional>

#include "runtime/process/session_folder.h"
#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

namespace control = runtime::control;

class StopTest : public ::testing::Test {
 protected:
  StopTest() {
    cluster_.on<control::StopNode>([this](const auto&) {
      ++asked_;
      here_.reset();
      cluster_.node().tell(control::Shutdown{runtime::unavailable("the node stops"), left_});
      cluster_.node().hang_up();
      return std::monostate();
    });
  }
  Said stop(bool force = false) {
    return said_by([&] { return stop_command(cluster_.address(), force); });
  }
  runtime::SessionInfo session(const std::string& address) const {
    runtime::SessionInfo info;
    info.cluster = id_;
    info.node = runtime::NodeId::random();
    info.address = address;
    info.head_address = "127.0.0.1:1";
    info.pid_scope = runtime::pid_scope();
    return info;
  }
  /// A node of this machine that lives as long as its folder.
  static std::optional<runtime::SessionFolder> publish(const runtime::SessionInfo& info) {
    auto folder = runtime::SessionFolder::create(info.cluster, info.node, "secret");
    EXPECT_TRUE(folder.ok()) << folder.status().to_string();
    if (!folder.ok()) return std::nullopt;
    EXPECT_TRUE(folder->publish(info, false).ok());
    return *std::move(folder);
  }

  const runtime::ClusterId id_ = runtime::ClusterId::random();
  FakeCluster cluster_;
  std::optional<runtime::SessionFolder>
      here_;  // of the cluster's node; it ends when it is asked to
  std::string left_;
  int asked_ = 0;
};

TEST_F(StopTest, ANodeElsewhereIsWaitedForUntilItHasGone) {
  const Said said = stop();
  EXPECT_EQ(said.code, 0) << said.err;
  expect_said(said.out, {"asked " + cluster_.address() + " to stop"});
  EXPECT_EQ(asked_, 1);
}

TEST_F(StopTest, TheVariablesAddressCountsAsNamed) {
  const std::string address = cluster_.address();
  const support::ScopedVariable variable("STARLING_ADDRESS", address.c_str());
  const Said said = said_by([] { return stop_command("", false); });
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(asked_, 1);
  const Said none = said_by([] { return stop_command("auto", false); });
  EXPECT_EQ(none.code, 1);
  expect_said(none.err, {"no cluster of this user runs on this machine"});
  EXPECT_EQ(asked_, 1);
}

TEST_F(StopTest, WhatCouldNotBeEndedIsAFailure) {
  left_ = "2 machines could not be removed: w-1, w-2";
  const Said said = stop();
  EXPECT_EQ(said.code, 1);
  expect_said(said.err, {"error: " + left_});
}

TEST_F(StopTest, ANodeWithJobsIsAskedByForceOnly) {
  runtime::JobInfo job;
  job.job = runtime::JobId::random();
  job.command = "./train";
  job.pid = 12;
  cluster_.state.jobs.push_back(job);
  EXPECT_EQ(stop().code, 1);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(stop(/*force=*/true).code, 0);
  EXPECT_EQ(asked_, 1);
}

TEST_F(StopTest, ANodeWithoutTheHeadEndsAlone) {
  here_ = publish(session(cluster_.address()));
  const runtime::SessionInfo other = session("127.0.0.1:2");
  const auto other_folder = publish(other);
  const Said said = stop();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "stopped node " + cluster_.address() + " of cluster " + id_.short_hex() +
                          ", which keeps running\n");
  EXPECT_EQ(asked_, 1);
  const auto running = runtime::running_sessions();
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].node, other.node);
}

TEST_F(StopTest, ASilentNodeWhosePidMeansAnotherProcessHereIsNotKilled) {
  runtime::SessionInfo info = session(cluster_.address());
  info.pid_scope = "another boot";
  info.host = "far";
  here_ = publish(info);
  cluster_.node().close();
  const Said said = stop(/*force=*/true);
  EXPECT_EQ(said.code, 1);
  expect_said(said.err, {"does not answer", "runs on far in another PID namespace"});
  EXPECT_EQ(runtime::running_sessions().size(), 1u) << "its files are still its own";
}

}  // namespace
}  // namespace placement
