#include "runtime/node/node_options.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

class NodeOptionsTest : public ::testing::Test {
 protected:
  NodeOptionsTest() {
    node_.node = NodeId::random();
    node_.cluster = ClusterId::random();
    node_.session_dir = "/run/starling/cluster/node";
    node_.program = "/usr/bin/starling";
    node_.journal = "/var/journal";
    setting_.address = "10.0.0.1:7000";
    setting_.credentials.token = "secret";
    setting_.gpus = {"3", "GPU-7f3a"};
  }

  NodeOptions node_;
  NodeSetting setting_;
};

TEST_F(NodeOptionsTest, OnlyTheHeadsNodeHasItsProcess) {
  node_.head = Endpoint::tcp("10.0.0.9", 7000);
  EXPECT_FALSE(head_options(node_, setting_).child);
  EXPECT_EQ(head_options(node_, setting_).head.to_string(), "10.0.0.9:7000");
  node_.is_head = true;
  node_.durable = true;
  const HeadConnectionOptions head = head_options(node_, setting_);
  ASSERT_TRUE(head.child);
  EXPECT_EQ(head.child->socket, "/run/starling/cluster/node/head.sock");
  EXPECT_EQ(head.child->journal, "/var/journal");
  EXPECT_EQ(head.child->token.present(), "secret");
  EXPECT_TRUE(head.child->durable);
}

TEST_F(NodeOptionsTest, AJobsFoldersAreTheNodesAndItsFilesAreTheMachines) {
  const NodeJobsOptions jobs = jobs_options(node_, setting_, "/cache");
  EXPECT_EQ(jobs.files.cache, "/cache/files");
  EXPECT_EQ(jobs.files.folders, "/cache/jobs/" + node_.node.hex());
  EXPECT_NE(jobs.files.programs, jobs.files.cache);
  EXPECT_EQ(jobs.runner.token_file, "/run/starling/cluster/token") << "of all the cluster's nodes";
}

TEST_F(NodeOptionsTest, ZeroIsEachPartsDefault) {
  const std::uint64_t usual = JobFilesOptions().job_bytes_max;
  EXPECT_EQ(jobs_options(node_, setting_, "/cache").files.job_bytes_max, usual);
  node_.job_size_limit = 5;
  EXPECT_EQ(jobs_options(node_, setting_, "/cache").files.job_bytes_max, 5u);
}

TEST_F(NodeOptionsTest, WorkersAndJobsGetTheGpusByTheirNames) {
  EXPECT_EQ(pool_options(node_, setting_).gpu_names, setting_.gpus);
  EXPECT_EQ(jobs_options(node_, setting_, "/cache").gpu_names, setting_.gpus);
}

TEST_F(NodeOptionsTest, ANodeJoinsWithItsAddressNotWithWhatItIsBoundTo) {
  node_.bind = Endpoint::tcp("0.0.0.0", 0);
  node_.resources = {{"CPU", 8}};
  node_.labels = {{"zone", "a"}};
  const NodeInfo info = node_info(node_, setting_);
  EXPECT_EQ(info.address, "10.0.0.1:7000");
  EXPECT_EQ(info.resources, node_.resources);
  EXPECT_EQ(info.labels, node_.labels);
  EXPECT_GT(info.pid, 0);
  EXPECT_EQ(ports_options(node_).socket, "/run/starling/cluster/node/node.sock");
}

}  // namespace
}  // namespace runtime
