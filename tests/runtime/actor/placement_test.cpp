// Placement groups and the options that place actors, as a driver uses them.
#include "cluster_fixture.h"
#include "tests/support/blocking_thread.h"

namespace runtime::test {
namespace {

class PlacementTest : public ClusterTest {
 protected:
  static GroupSpec group(std::size_t bundles, double cpus = 1) {
    GroupSpec spec;
    spec.bundles.assign(bundles, {{"CPU", cpus}});
    return spec;
  }
};

TEST_F(PlacementTest, ManyGroupsAreUnderWayAtOnce) {
  std::vector<PendingGroup> pending;
  for (int i = 0; i < 100; ++i) pending.push_back(rt_->groups().create(group(4, 0.01)));
  std::vector<ObjectRef<void>> removed;
  for (const PendingGroup& each : pending) {
    auto state = each.get();
    ASSERT_TRUE(state.ok()) << state.status().to_string();
    EXPECT_EQ(state->spec.group, each.id());
    EXPECT_TRUE(each.is_ready());
    removed.push_back(rt_->groups().remove(each.id()));
  }
  EXPECT_TRUE(rt_->objects().gather(removed, 20s).ok());
  const auto state = rt_->cluster().state();
  ASSERT_TRUE(state.ok());
  EXPECT_TRUE(state->groups.empty());
  EXPECT_EQ(state->nodes[0].available.at("CPU"), 4);
}

TEST_F(PlacementTest, AnActorWaitsForTheGroupThatItWasSpawnedInto) {
  auto hog = counter(0, {.cpus = 4});
  PendingGroup pending = rt_->groups().create(group(2));
  ActorOptions inside{.cpus = 1};
  inside.bundle = BundleSlot{pending.id(), 1};
  support::BlockingThread spawning;
  std::thread frees([&] {
    EXPECT_TRUE(spawning.is_blocked());
    EXPECT_TRUE(rt_->kill(hog).ok());
  });
  spawning.begin();
  auto actor = rt_->spawn<Counter>(inside, 5);
  frees.join();
  ASSERT_TRUE(actor.ok()) << actor.status().to_string();
  EXPECT_EQ(get(actor->call(&Counter::total)), 5);
  EXPECT_TRUE(pending.get().ok());
}

TEST_F(PlacementTest, GroupsHaveNames) {
  GroupSpec spec = group(1);
  spec.name = "pair";
  auto made = rt_->groups().create(spec).get();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  auto found = rt_->groups().find("pair");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->spec.group, made->spec.group);
  EXPECT_TRUE(rt_->groups().wait(made->spec.group).ok());
  expect_failure(rt_->groups().create(spec).get().status(), ErrorCode::kInvalidArgument,
                 {"pair", "taken"});
  expect_failure(rt_->groups().find("pairs").status(), ErrorCode::kNotFound,
                 {"did you mean 'pair'"});
  expect_failure(rt_->groups().wait({}).status(), ErrorCode::kInvalidArgument, {"none"});
}

TEST_F(PlacementTest, WhatDoesNotFitFailsAtItsDeadlineWithTheReason) {
  expect_failure(rt_->groups().create(group(1, 9), 300ms).get().status(),
                 ErrorCode::kResourceExhausted,
                 {"CPU 9 (has 4)", "even when idle", "could ever hold it"});
  expect_failure(rt_->groups().create(group(5), 300ms).get().status(),
                 ErrorCode::kResourceExhausted, {"4 of them find a place", "not even idle"});
  expect_failure(rt_->groups().create(group(1, -1)).get().status(), ErrorCode::kInvalidArgument,
                 {"CPU"});
  expect_failure(rt_->spawn<Counter>({.gpus = 2, .create_timeout = 300ms}, 0).status(),
                 ErrorCode::kResourceExhausted, {"GPU 2 (has 0)", "start one with GPU 2"});
  expect_failure(rt_->spawn<Counter>({.labels = {{"zone", "in("}}}, 0).status(),
                 ErrorCode::kInvalidArgument, {"zone"});
}

TEST_F(PlacementTest, APreferredNodeThatIsNotThereIsNoHindrance) {
  auto made = rt_->spawn<Counter>({.node = NodeId::random(), .node_is_preferred = true}, 1);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(rt_->spawn<Counter>({.node = NodeId::random()}, 1).status().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace runtime::test
