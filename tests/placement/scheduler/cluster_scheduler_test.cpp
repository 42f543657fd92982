#include "placement/scheduler/cluster_scheduler.h"

#include <gtest/gtest.h>

namespace placement {
namespace {

using runtime::ErrorCode;

class ClusterSchedulerTest : public ::testing::Test {
 protected:
  runtime::NodeId add(runtime::ResourceMap resources, runtime::Labels labels = {}) {
    runtime::NodeInfo info;
    info.node = runtime::NodeId::random();
    info.address = "10.0.0." + std::to_string(++nodes_) + ":6399";
    info.resources = std::move(resources);
    info.labels = std::move(labels);
    EXPECT_TRUE(scheduler_.add_node(info).ok());
    return info.node;
  }
  static runtime::ActorSpec actor(runtime::ResourceMap resources) {
    runtime::ActorSpec spec;
    spec.actor = runtime::ActorId::random();
    spec.class_name = "Counter";
    spec.resources = std::move(resources);
    return spec;
  }
  static runtime::GroupSpec group(runtime::GroupStrategy strategy, std::vector<runtime::ResourceMap> bundles) {
    runtime::GroupSpec spec;
    spec.group = runtime::GroupId::random();
    spec.strategy = strategy;
    spec.bundles = std::move(bundles);
    return spec;
  }

  ClusterScheduler scheduler_;
  int nodes_ = 0;
};

TEST_F(ClusterSchedulerTest, ReservesAndGivesBack) {
  auto node = add({{"CPU", 2}});
  auto first = actor({{"CPU", 1.5}});
  auto second = actor({{"CPU", 1}});
  EXPECT_EQ(*scheduler_.place_actor(first), node);
  EXPECT_EQ(scheduler_.available(node), (runtime::ResourceMap{{"CPU", 0.5}}));
  EXPECT_EQ(scheduler_.place_actor(second).status().code(), ErrorCode::kResourceExhausted);
  scheduler_.release_actor(first.actor);
  scheduler_.release_actor(first.actor);  // once is enough
  EXPECT_TRUE(scheduler_.place_actor(second).ok());
}

TEST_F(ClusterSchedulerTest, ExplainsWhatIsMissingWhere) {
  auto node = add({{"CPU", 2}});
  auto placed = scheduler_.place_actor(actor({{"CPU", 1}, {"GPU", 1}}));
  ASSERT_FALSE(placed.ok());
  const std::string& text = placed.status().message();
  EXPECT_NE(text.find("GPU 1 (has 0)"), std::string::npos) << text;
  EXPECT_NE(text.find(node.short_hex()), std::string::npos) << text;
  EXPECT_NE(text.find("even when idle"), std::string::npos) << text;
}

TEST_F(ClusterSchedulerTest, PacksThenSpreads) {
  auto a = add({{"CPU", 4}});
  auto b = add({{"CPU", 4}});
  EXPECT_EQ(*scheduler_.place_actor(actor({{"CPU", 1}})), a);
  EXPECT_EQ(*scheduler_.place_actor(actor({{"CPU", 1}})), a);
  EXPECT_EQ(*scheduler_.place_actor(actor({{"CPU", 1}})), b);  // a would be more than half used
}

TEST_F(ClusterSchedulerTest, KeepsToNodeAndLabels) {
  add({{"CPU", 4}});
  auto b = add({{"CPU", 4}}, {{"zone", "b"}});
  auto labelled = actor({{"CPU", 1}});
  labelled.labels = {{"zone", "b"}};
  EXPECT_EQ(*scheduler_.place_actor(labelled), b);
  auto bound = actor({{"CPU", 1}});
  bound.node = b;
  EXPECT_EQ(*scheduler_.place_actor(bound), b);
  bound = actor({});
  bound.node = runtime::NodeId::random();
  EXPECT_EQ(scheduler_.place_actor(bound).status().code(), ErrorCode::kNotFound);
}

TEST_F(ClusterSchedulerTest, GroupsReserveAllOrNothing) {
  auto a = add({{"CPU", 2}});
  add({{"CPU", 2}});
  using enum runtime::GroupStrategy;
  auto too_much = group(kSpread, {{{"CPU", 2}}, {{"CPU", 2}}, {{"CPU", 1}}});
  EXPECT_EQ(scheduler_.place_group(too_much).status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(scheduler_.available(a), (runtime::ResourceMap{{"CPU", 2}}));

  auto fits = group(kStrictSpread, {{{"CPU", 2}}, {{"CPU", 1}}});
  auto nodes = scheduler_.place_group(fits);
  ASSERT_TRUE(nodes.ok());
  EXPECT_NE((*nodes)[0], (*nodes)[1]);

  auto inside = actor({{"CPU", 1}});
  inside.bundle = runtime::BundleSlot{fits.group, 0};
  EXPECT_EQ(*scheduler_.place_actor(inside), (*nodes)[0]);
  auto beside = actor({{"CPU", 2}});
  EXPECT_FALSE(scheduler_.place_actor(beside).ok());
  auto larger = actor({{"CPU", 3}});
  larger.bundle = inside.bundle;
  EXPECT_EQ(scheduler_.place_actor(larger).status().code(), ErrorCode::kInvalidArgument);  // the bundle never grows
  auto outside = actor({{"CPU", 1}});
  outside.bundle = runtime::BundleSlot{fits.group, 2};
  EXPECT_EQ(scheduler_.place_actor(outside).status().code(), ErrorCode::kNotFound);

  scheduler_.remove_group(fits.group);
  scheduler_.release_actor(inside.actor);
  EXPECT_TRUE(scheduler_.place_actor(beside).ok());
}

TEST_F(ClusterSchedulerTest, ForgetsALostNode) {
  auto a = add({{"CPU", 2}});
  auto first = actor({{"CPU", 2}});
  EXPECT_TRUE(scheduler_.place_actor(first).ok());
  scheduler_.remove_node(a);
  scheduler_.release_actor(first.actor);
  EXPECT_EQ(scheduler_.place_actor(actor({})).status().code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(scheduler_.available(a).empty());
}

TEST_F(ClusterSchedulerTest, RefusesNonsense) {
  add({{"CPU", 2}});
  EXPECT_EQ(scheduler_.place_actor(actor({{"CPU", -1}})).status().code(), ErrorCode::kInvalidArgument);
  using enum runtime::GroupStrategy;
  EXPECT_EQ(scheduler_.place_group(group(kPack, {})).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(scheduler_.place_group(group(kPack, {{}})).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace placement
