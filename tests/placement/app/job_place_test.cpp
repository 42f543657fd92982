#include "placement/app/job_place.h"

#include "runtime/process/machine.h"
#include "tests/placement/app/fake_cluster.h"
#include "tests/support/expect_failure.h"

namespace placement {
namespace {

using runtime::ErrorCode;
using support::expect_failure;
namespace control = runtime::control;

class JobPlaceTest : public ::testing::Test {
 protected:
  JobPlaceTest() {
    options_.command = {"./train", "fast"};
    options_.amounts.cpus = 2;
  }
  runtime::Result<JobPlace> wait() { return wait_for_place(loop_, *client_, options_); }
  /// A node of the cluster.
  runtime::NodeId add_node(const std::string& host) {
    runtime::NodeInfo info;
    info.node = runtime::NodeId::random();
    info.address = host + ":7000";
    info.hostname = host;
    cluster_.state.nodes.push_back(info);
    return info.node;
  }
  static runtime::GroupState placed(runtime::NodeId node) {
    runtime::GroupState group;
    group.placed = true;
    group.nodes = {node};
    return group;
  }
  static runtime::GroupState waiting(const std::string& why) {
    runtime::GroupState group;
    group.pending_reason = why;
    return group;
  }

  FakeCluster cluster_;
  runtime::EventLoop loop_;
  std::unique_ptr<runtime::NodeClient> client_ = cluster_.node().connect(loop_);
  SubmitOptions options_;
};

TEST_F(JobPlaceTest, QueuesWhatTheOptionsSayAndFindsItsNode) {
  options_.amounts.resources = R"({"disk": 1})";
  options_.labels = {"zone=a"};
  const runtime::NodeId node = add_node("far");
  control::QueueJob queued;
  cluster_.on<control::QueueJob>([&](const control::QueueJob& request) {
    queued = request;
    return placed(node);
  });
  const auto place = wait();
  ASSERT_TRUE(place.ok()) << place.status().to_string();
  EXPECT_EQ(queued.argv, options_.command);
  EXPECT_EQ(queued.resources, (runtime::ResourceMap{{"CPU", 2}, {"disk", 1}}));
  EXPECT_EQ(queued.labels, (runtime::Labels{{"zone", "a"}}));
  EXPECT_EQ(place->job, queued.job);
  EXPECT_EQ(place->group, queued.place);
  EXPECT_EQ(place->node, node);
  EXPECT_EQ(place->address, "far:7000");
  EXPECT_FALSE(place->is_here);
}

TEST_F(JobPlaceTest, NothingIsQueuedByAMistake) {
  cluster_.on<control::QueueJob>([](const auto&) {
    ADD_FAILURE() << "it is queued";
    return runtime::internal_error("queued");
  });
  options_.labels = {"zone"};
  expect_failure(wait().status(), ErrorCode::kInvalidArgument, {"--label", "zone"});
  options_.labels = {};
  for (const char* time : {"soon", "0s", "-1s"}) {
    options_.place_timeout = time;
    expect_failure(wait().status(), ErrorCode::kInvalidArgument, {"--place-timeout"});
  }
  options_.amounts = {};
  options_.labels = {"zone=a"};
  expect_failure(wait().status(), ErrorCode::kInvalidArgument, {"--label", "--num-cpus 1"});
}

TEST_F(JobPlaceTest, TheHeadsRefusalIsTheAnswer) {
  cluster_.on<control::QueueJob>(
      [](const auto&) { return runtime::deadline_exceeded("no node has 2 CPUs"); });
  EXPECT_EQ(wait().status().code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(JobPlaceTest, ANodeThatHasGoneMeanwhileIsReplacedByTheHead) {
  const runtime::NodeId gone = runtime::NodeId::random();
  const runtime::NodeId next = add_node(runtime::machine_hostname());
  std::vector<runtime::GroupState> told{placed(gone), waiting("looks again"),
                                        waiting("looks again"), placed(next)};
  cluster_.on<control::QueueJob>([&](const auto&) { return placed(gone); });
  cluster_.on<control::QueryGroup>([&](const auto&) {
    const runtime::GroupState first = told.front();
    if (told.size() > 1) told.erase(told.begin());
    return first;
  });
  runtime::Result<JobPlace> place = runtime::internal_error("not asked");
  const Said said = said_by([&] {
    place = wait();
    return 0;
  });
  ASSERT_TRUE(place.ok()) << place.status().to_string();
  EXPECT_EQ(place->node, next);
  EXPECT_TRUE(place->is_here);
  EXPECT_EQ(said.err, "job " + place->job.short_hex() + " waits (Ctrl-C cancels it): looks again\n")
      << "once for each reason";
}

TEST_F(JobPlaceTest, AJobThatHasEndedHasNoOtherPlace) {
  cluster_.on<control::QueryGroup>([](const auto&) { return runtime::not_found("no such group"); });
  JobPlace place;
  place.job = runtime::JobId::random();
  expect_failure(wait_for_another_place(loop_, *client_, place).status(), ErrorCode::kNotFound,
                 {"job " + place.job.short_hex() + " lost its place"});
}

TEST_F(JobPlaceTest, AnotherMachinesNodeIsReachedByItsAddressWithTheClustersToken) {
  runtime::ClusterAddress asked;
  asked.address = cluster_.address();
  asked.token = "the cluster's";
  asked.cluster = cluster_.state.cluster;
  asked.unix_path = "/run/of-the-node-that-was-asked";
  JobPlace place;
  place.address = "far:7000";
  const runtime::ClusterAddress at = address_of(place, asked);
  EXPECT_EQ(at.address, "far:7000");
  EXPECT_EQ(at.token, "the cluster's");
  EXPECT_EQ(at.cluster, asked.cluster);
  EXPECT_EQ(at.unix_path, "");
}

}  // namespace
}  // namespace placement
