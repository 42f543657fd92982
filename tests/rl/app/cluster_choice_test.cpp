#include "rl/app/cluster_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ClusterView;
using runtime::NodeInfo;

NodeInfo node_at(const std::string& address) {
  NodeInfo node;
  node.node.bytes[0] = 0xab;
  node.address = address;
  node.hostname = "host";
  node.resources = {{"CPU", 2.5}, {"memory", 8e9}};
  return node;
}

TEST(ClusterChoice, APrivateClusterIsToldToTheRuntimeToo) {
  const support::ScopedVariable other("STARLING_ADDRESS", "127.0.0.1:1");
  const auto view = choose_cluster("", /*is_private=*/true);
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_TRUE(view->is_private);
  EXPECT_STREQ(std::getenv("STARLING_ADDRESS"), "private");
}

TEST(ClusterChoice, AnAddressLeavesTheEnvironmentAsItIs) {
  const support::ScopedVariable other("STARLING_ADDRESS", "127.0.0.1:1");
  const auto view = choose_cluster("private", /*is_private=*/false);
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_TRUE(view->is_private) << "the address goes before the environment";
  EXPECT_STREQ(std::getenv("STARLING_ADDRESS"), "127.0.0.1:1");
}

TEST(ClusterChoice, ItsOwnClusterIsThisMachine) {
  ClusterView view;
  view.is_private = true;
  view.nodes = {node_at("")};
  EXPECT_EQ(cluster_text(view),
            "its own cluster, on this machine (2.5 CPUs, 8.0 GB), for as long as the command runs");
}

TEST(ClusterChoice, ARunningOneIsShownWithItsNodes) {
  ClusterView view;
  view.cluster.bytes[0] = 0x7f;
  view.address = "127.0.0.1:6400";
  view.since_ms = 1'769'860'800'123;
  view.nodes = {node_at("10.0.0.1:1"), node_at("10.0.0.2:1")};
  view.nodes[0].is_head = true;
  view.nodes[1].hostname = "a\x1b[2J\nb";  // another user's machine may call itself so
  view.nodes[1].resources["GPU"] = 4;
  view.nodes[1].drain.emplace();
  EXPECT_EQ(cluster_text(view),
            "joins the cluster at 127.0.0.1:6400 (7f000000, since 2026-01-31T12:00:00Z) of 2 "
            "nodes:\n"
            "  node ab000000 at 10.0.0.1:1 on host: 2.5 CPUs, 8.0 GB (head)\n"
            "  node ab000000 at 10.0.0.2:1 on a\\x1b[2J\\nb: 2.5 CPUs, 8.0 GB, 4 GPUs "
            "(about to leave)\n"
            "  (--private: its own cluster; --address HOST:PORT: another)");
}

TEST(ClusterChoice, OfManyNodesTwentyAreListedAndTheOthersCounted) {
  ClusterView view;
  view.nodes.assign(20, node_at("10.0.0.1:1"));
  EXPECT_EQ(cluster_text(view).find(" more"), std::string::npos);
  view.nodes.resize(23, node_at("10.0.0.1:1"));
  const std::string text = cluster_text(view);
  EXPECT_NE(text.find("of 23 nodes:"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  and 3 more\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 22) << text;
}

}  // namespace
}  // namespace rl
