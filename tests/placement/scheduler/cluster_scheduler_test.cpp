#include "placement/scheduler/cluster_scheduler.h"

#include <gtest/gtest.h>

#include <chrono>

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
  static runtime::GroupSpec group(runtime::GroupStrategy strategy,
                                  std::vector<runtime::ResourceMap> bundles) {
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
  EXPECT_EQ(scheduler_.place_actor(first)->node, node);
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
  EXPECT_EQ(scheduler_.place_actor(actor({{"CPU", 1}}))->node, a);
  EXPECT_EQ(scheduler_.place_actor(actor({{"CPU", 1}}))->node, a);
  EXPECT_EQ(scheduler_.place_actor(actor({{"CPU", 1}}))->node,
            b);  // a would be more than half used
}

TEST_F(ClusterSchedulerTest, KeepsToNodeAndLabels) {
  add({{"CPU", 4}});
  auto b = add({{"CPU", 4}}, {{"zone", "b"}});
  auto labelled = actor({{"CPU", 1}});
  labelled.labels = {{"zone", "b"}};
  EXPECT_EQ(scheduler_.place_actor(labelled)->node, b);
  auto bound = actor({{"CPU", 1}});
  bound.node = b;
  EXPECT_EQ(scheduler_.place_actor(bound)->node, b);
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
  EXPECT_NE(nodes->nodes[0], nodes->nodes[1]);

  auto inside = actor({{"CPU", 1}});
  inside.bundle = runtime::BundleSlot{fits.group, 0};
  EXPECT_EQ(scheduler_.place_actor(inside)->node, nodes->nodes[0]);
  auto ungrouped = actor({{"CPU", 2}});
  EXPECT_FALSE(scheduler_.place_actor(ungrouped).ok());
  auto larger = actor({{"CPU", 3}});
  larger.bundle = inside.bundle;
  EXPECT_EQ(scheduler_.place_actor(larger).status().code(),
            ErrorCode::kInvalidArgument);  // the bundle never grows
  auto outside = actor({{"CPU", 1}});
  outside.bundle = runtime::BundleSlot{fits.group, 2};
  EXPECT_EQ(scheduler_.place_actor(outside).status().code(), ErrorCode::kNotFound);

  scheduler_.remove_group(fits.group);
  scheduler_.release_actor(inside.actor);
  EXPECT_TRUE(scheduler_.place_actor(ungrouped).ok());
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
  EXPECT_EQ(scheduler_.place_actor(actor({{"CPU", -1}})).status().code(),
            ErrorCode::kInvalidArgument);
  using enum runtime::GroupStrategy;
  EXPECT_EQ(scheduler_.place_group(group(kPack, {})).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(scheduler_.place_group(group(kPack, {{}})).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(ClusterSchedulerTest, GivesGpusByNumberAndTakesThemBack) {
  auto node = add({{"GPU", 2}});
  auto half = actor({{"GPU", 0.5}}), other_half = actor({{"GPU", 0.5}}),
       whole = actor({{"GPU", 1}}), late = actor({{"GPU", 1}});
  EXPECT_EQ(scheduler_.place_actor(half)->gpus, GpuList{0});
  EXPECT_EQ(scheduler_.place_actor(other_half)->gpus, GpuList{0});
  EXPECT_EQ(scheduler_.place_actor(whole)->gpus, GpuList{1});
  scheduler_.release_actor(half.actor);
  EXPECT_EQ(scheduler_.place_actor(late).status().code(),
            ErrorCode::kResourceExhausted);  // half of one is free
  scheduler_.release_actor(other_half.actor);
  EXPECT_EQ(scheduler_.place_actor(late)->gpus, GpuList{0});
  EXPECT_EQ(scheduler_.place_actor(actor({{"GPU", 1.5}})).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(scheduler_.available(node).empty());
}

TEST_F(ClusterSchedulerTest, BundlesHaveGpusOfTheirOwn) {
  add({{"GPU", 4}});
  auto spec = group(runtime::GroupStrategy::kPack, {{{"GPU", 0.5}}, {{"GPU", 2}}});
  auto place = scheduler_.place_group(spec);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->gpus[1], (GpuList{0, 1}));
  EXPECT_EQ(place->gpus[0], GpuList{2});
  auto inside = actor({{"GPU", 1}}), ungrouped = actor({{"GPU", 1}});
  inside.bundle = runtime::BundleSlot{spec.group, 1};
  EXPECT_EQ(scheduler_.place_actor(inside)->gpus, GpuList{0});
  EXPECT_EQ(scheduler_.place_actor(ungrouped)->gpus, GpuList{3});
}

TEST_F(ClusterSchedulerTest, WhatAnActorUsesOutlivesItsGroup) {
  auto node = add({{"GPU", 2}, {"CPU", 2}});
  auto spec = group(runtime::GroupStrategy::kPack, {{{"GPU", 2}, {"CPU", 2}}});
  ASSERT_TRUE(scheduler_.place_group(spec).ok());
  auto inside = actor({{"GPU", 1}});
  inside.bundle = runtime::BundleSlot{spec.group, 0};
  EXPECT_EQ(scheduler_.place_actor(inside)->gpus, GpuList{0});
  scheduler_.remove_group(spec.group);
  EXPECT_EQ(scheduler_.available(node), (runtime::ResourceMap{{"CPU", 2}, {"GPU", 1}}));
  EXPECT_EQ(scheduler_.place_actor(actor({{"GPU", 1}}))->gpus,
            GpuList{1});  // its process may still be there
  scheduler_.release_actor(inside.actor);
  EXPECT_EQ(scheduler_.place_actor(actor({{"GPU", 1}}))->gpus, GpuList{0});
}

TEST_F(ClusterSchedulerTest, ARestartedHeadGoesOnWithTheSameGpus) {
  auto node = add({{"GPU", 4}, {"CPU", 4}});
  auto spec = group(runtime::GroupStrategy::kPack, {{{"GPU", 2}}});
  auto alone = actor({{"GPU", 1}}), inside = actor({{"GPU", 1}}), orphan = actor({{"CPU", 1}});
  inside.bundle = runtime::BundleSlot{spec.group, 0};
  orphan.bundle = runtime::BundleSlot{runtime::GroupId::random(),
                                      0};  // of a group that is gone, and has not ended yet
  scheduler_.restore_group(spec, {{node}, {{1, 3}}});
  scheduler_.restore_actor(alone, {node, {2}});
  scheduler_.restore_actor(inside, {node, {3}});
  scheduler_.restore_actor(orphan, {node, {}});
  EXPECT_EQ(scheduler_.available(node), (runtime::ResourceMap{{"CPU", 3}, {"GPU", 1}}));
  EXPECT_EQ(scheduler_.place_actor(actor({{"GPU", 1}}))->gpus, GpuList{0});
  auto second = actor({{"GPU", 1}});
  second.bundle = inside.bundle;
  EXPECT_EQ(scheduler_.place_actor(second)->gpus, GpuList{1});
}

TEST_F(ClusterSchedulerTest, PrefersANodeOrInsists) {
  auto a = add({{"CPU", 4}});
  auto b = add({{"CPU", 1}});
  auto first = actor({{"CPU", 1}}), second = actor({{"CPU", 1}}), third = actor({{"CPU", 1}});
  for (auto* spec : {&first, &second, &third}) spec->node = b;
  second.node_is_preferred = true;
  EXPECT_EQ(scheduler_.place_actor(first)->node, b);
  EXPECT_EQ(scheduler_.place_actor(second)->node, a);
  auto refused = scheduler_.place_actor(third).status();
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.message().find(b.short_hex()), std::string::npos) << refused.message();
  second.actor = runtime::ActorId::random();
  second.node = runtime::NodeId::random();
  EXPECT_EQ(scheduler_.place_actor(second)->node, a);
}

TEST_F(ClusterSchedulerTest, SpreadsOrPacksActors) {
  std::vector<runtime::NodeId> nodes{add({{"CPU", 4}}), add({{"CPU", 8}}), add({{"CPU", 8}})};
  std::map<runtime::NodeId, int> spread, packed;
  for (int i = 0; i < 6; ++i) {
    auto spec = actor({{"CPU", 1}});
    spec.scheduling = runtime::ActorScheduling::kSpread;
    ++spread[scheduler_.place_actor(spec)->node];
  }
  for (runtime::NodeId node : nodes) EXPECT_EQ(spread[node], 2);
  for (int i = 0; i < 8; ++i) {
    auto spec = actor({{"CPU", 1}});
    spec.scheduling = runtime::ActorScheduling::kPack;
    ++packed[scheduler_.place_actor(spec)->node];
  }
  EXPECT_EQ(packed[nodes[0]], 2);  // the fullest first
  EXPECT_EQ(packed.size(), 2u);
}

TEST_F(ClusterSchedulerTest, BundlesKeepToTheirLabels) {
  auto a = add({{"CPU", 8}}, {{"zone", "a"}});
  auto b = add({{"CPU", 8}}, {{"zone", "b"}});
  for (auto strategy : {runtime::GroupStrategy::kPack, runtime::GroupStrategy::kSpread,
                        runtime::GroupStrategy::kStrictSpread}) {
    auto spec = group(strategy, {{{"CPU", 1}}, {{"CPU", 1}}});
    spec.bundle_labels = {{{"zone", "b"}}, {{"zone", "!b"}}};
    auto place = scheduler_.place_group(spec);
    ASSERT_TRUE(place.ok()) << place.status().to_string();
    EXPECT_EQ(place->nodes, (std::vector<runtime::NodeId>{b, a}));
  }
  auto split = group(runtime::GroupStrategy::kStrictPack, {{{"CPU", 1}}, {{"CPU", 1}}});
  split.bundle_labels = {{{"zone", "b"}}, {{"zone", "a"}}};
  EXPECT_EQ(scheduler_.place_group(split).status().code(), ErrorCode::kResourceExhausted);
  split.bundle_labels = {{}, {{"zone", "in("}}};
  EXPECT_EQ(scheduler_.place_group(split).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ClusterSchedulerTest, AClosedNodeGetsNothingNew) {
  auto a = add({{"CPU", 4}});
  auto b = add({{"CPU", 1}});
  scheduler_.set_open(a, false);
  EXPECT_EQ(scheduler_.place_actor(actor({{"CPU", 1}}))->node, b);
  auto refused = scheduler_.place_actor(actor({{"CPU", 1}})).status();
  EXPECT_NE(refused.message().find("lacks CPU 1 (has 0 free of 1)"), std::string::npos)
      << refused.message();
  scheduler_.set_open(a, true);
  EXPECT_EQ(scheduler_.place_actor(actor({{"CPU", 1}}))->node, a);
}

void expect_parts(const runtime::Status& status, std::vector<std::string> parts) {
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.to_string();
  for (const std::string& part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos)
        << part << "\n in: " << status.message();
}

TEST_F(ClusterSchedulerTest, NamesTheNearestNodeWithFigures) {
  add({{"CPU", 2}});
  auto near = add({{"CPU", 8}, {"GPU", 4}});
  add({{"CPU", 64}}, {{"zone", "b"}});
  ASSERT_TRUE(scheduler_.place_actor(actor({{"GPU", 3}})).ok());
  expect_parts(scheduler_.place_actor(actor({{"CPU", 1}, {"GPU", 2}})).status(),
               {"needs CPU 1, GPU 2", near.short_hex(), "lacks GPU 2 (has 1 free of 4)"});
  // More than any node has: said so, with what would help; it may wait all the same.
  expect_parts(scheduler_.place_actor(actor({{"GPU", 8}})).status(),
               {near.short_hex(), "GPU 8 (has 1 free of 4)", "even when idle",
                "no node that is there could ever hold it", "start one with GPU 8"});
  auto elsewhere = actor({{"CPU", 1}});
  elsewhere.labels = {{"zone", "c"}};
  expect_parts(scheduler_.place_actor(elsewhere).status(), {"zone=c", "could ever hold it"});
}

// It is what the work waits for, however near the other comes.
TEST_F(ClusterSchedulerTest, ABusyNodeIsNamedBeforeOneThatNeverCouldHoldIt) {
  const auto small = add({{"CPU", 2}, {"memory", 4e9}});
  const auto busy = add({{"CPU", 2}, {"memory", 20e9}});
  ASSERT_EQ(scheduler_.place_actor(actor({{"CPU", 1}, {"memory", 19e9}}))->node, busy);
  const runtime::Status waits =
      scheduler_.place_actor(actor({{"CPU", 1}, {"memory", 4.0001e9}})).status();
  expect_parts(waits, {busy.short_hex(), "needs CPU 1, memory 4.01 GB",
                       "lacks memory 4.01 GB (has 1 GB free of 20 GB)"});
  EXPECT_EQ(waits.message().find(small.short_hex()), std::string::npos) << waits.message();
  EXPECT_EQ(waits.message().find("even when idle"), std::string::npos) << waits.message();
}

TEST_F(ClusterSchedulerTest, ExplainsGroups) {
  using enum runtime::GroupStrategy;
  auto a = add({{"CPU", 4}});
  auto b = add({{"CPU", 4}});
  expect_parts(
      scheduler_.place_group(group(kStrictSpread, {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}}))
          .status(),
      {"STRICT_SPREAD, 3 bundles", "a node for each bundle", "2 nodes", "not even idle"});
  expect_parts(scheduler_.place_group(group(kStrictPack, {{{"CPU", 3}}, {{"CPU", 2}}})).status(),
               {"all on one node they need CPU 5", "has 4", "could ever hold it"});
  expect_parts(scheduler_.place_group(group(kPack, {{{"CPU", 1}}, {{"CPU", 6}}})).status(),
               {"bundle 1 needs CPU 6", "start one with CPU 6"});
  expect_parts(
      scheduler_.place_group(group(kPack, {{{"CPU", 3}}, {{"CPU", 3}}, {{"CPU", 2}}})).status(),
      {"2 of them find a place", "the next needs CPU 2", "has 1 free of 4", "not even idle"});
  auto hog = actor({{"CPU", 2}});
  ASSERT_TRUE(scheduler_.place_actor(hog).ok());
  auto waits = scheduler_.place_group(group(kStrictSpread, {{{"CPU", 3}}, {{"CPU", 3}}})).status();
  expect_parts(waits, {"1 of them find a place", "has 2 free of 4"});
  EXPECT_EQ(waits.message().find("not even idle"), std::string::npos) << waits.message();
  EXPECT_TRUE(waits.message().find(a.short_hex()) != std::string::npos ||
              waits.message().find(b.short_hex()) != std::string::npos);
}

class ClusterSchedulerTiming : public ClusterSchedulerTest {};

TEST_F(ClusterSchedulerTiming, ManyNodesAndActorsCostLittle) {
  for (int i = 0; i < 2000; ++i) add({{"CPU", 4}}, {{"rack", std::to_string(i % 40)}});
  const auto start = std::chrono::steady_clock::now();
  std::vector<runtime::ActorSpec> actors;
  for (int i = 0; i < 2000; ++i) {
    actors.push_back(actor({{"CPU", 1}}));
    actors.back().scheduling =
        i % 2 ? runtime::ActorScheduling::kSpread : runtime::ActorScheduling::kDefault;
    ASSERT_TRUE(scheduler_.place_actor(actors.back()).ok());
  }
  for (int i = 0; i < 200; ++i) {
    auto spec =
        group(i % 2 ? runtime::GroupStrategy::kSpread : runtime::GroupStrategy::kStrictSpread,
              std::vector<runtime::ResourceMap>(8, {{"CPU", 1}}));
    ASSERT_TRUE(scheduler_.place_group(spec).ok());
    scheduler_.remove_group(spec.group);
  }
  for (const auto& spec : actors) scheduler_.release_actor(spec.actor);
  // Without optimisation, on a machine that does other things too.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace placement
