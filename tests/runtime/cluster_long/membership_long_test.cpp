// Processes that stand still, and links that carry in one direction only.
#include "tests/runtime/cluster/membership_fixture.h"

#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

TEST_F(MembershipTest, AHeadThatWasStoppedForLongerThanTheLeaseDeclaresNoNodeDead) {
  start({.machines = 3, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 2, .per_second = 10, .kinds = "ae"});
  ASSERT_TRUE(eventually([&] { return history().lives.size() == 2; }, 40s));
  const pid_t head = cluster_->head();
  ::kill(head, SIGSTOP);
  support::hold_for(12s);  // twice the lease
  ::kill(head, SIGCONT);
  support::hold_for(2s);  // in which it would declare a node dead
  EXPECT_EQ(cluster_->head(), head);
  EXPECT_EQ(cluster_->members(1), 3);
  EXPECT_EQ(cluster_->members(2), 3);
  EXPECT_EQ(history().lives.size(), 2u) << "an actor was started again though its node was well";
  end_loads();
  expect_promises_kept(2);
}

TEST_F(MembershipTest, ANodeThatStopsForLessThanItsLeaseIsNoLessAMember) {
  start({.machines = 3, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 2, .per_second = 10, .kinds = "ae"});
  ASSERT_TRUE(eventually([&] { return history().lives.size() == 2; }, 40s));
  for (int machine : {1, 2}) {
    ::kill(cluster_->node(machine), SIGSTOP);
    support::hold_for(4s);  // less than the lease
    ::kill(cluster_->node(machine), SIGCONT);
  }
  support::hold_for(1s);  // in which it would be declared dead
  EXPECT_EQ(cluster_->members(0), 3);
  EXPECT_EQ(history().lives.size(), 2u);
  end_loads();
  expect_promises_kept(2);
}

// The node hears the head, which does not hear it; and the other way round.
TEST_F(MembershipTest, AOneWayCutIsAPartition) {
  start({.machines = 4, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 4, .per_second = 10, .kinds = "aep"});
  ASSERT_TRUE(eventually([&] { return history().lives.size() == 4; }, 40s));
  for (const auto& [from, to] : {std::pair(3, 0), std::pair(0, 3)}) {
    network_->cut(from, to);
    const int seen = time_until_members(3, 20s, 1);
    std::printf("that machine %d is not heard by machine %d is seen after %d ms\n", from, to, seen);
    EXPECT_LT(seen, 10'000);
    network_->heal();
    expect_back(3, 4);
  }
  end_loads();
  expect_promises_kept(2);
}

TEST_F(MembershipTest, LossDelayAndReorderingCostTimeOnly) {
  make_network(4, {3});
  if (IsSkipped()) return;
  cluster_ = std::make_unique<Cluster>(
      *network_, folder_.path(), ClusterOptions{.machines = 4, .arguments = {"--num-cpus", "4"}});
  ASSERT_TRUE(cluster_->start().ok());
  network_->set_quality(3, {.delay = 20ms, .jitter = 20ms, .loss = 0.01});
  for (int machine : {0, 1, 2}) network_->lose(machine, 0.05);
  begin_load(1, {.tallies = 4, .per_second = 10});
  begin_load(3, {.tallies = 4, .per_second = 10});
  support::hold_for(15s);  // of load on that link
  EXPECT_EQ(cluster_->members(0), 4);
  EXPECT_GT(network_->reordered(3), 100u) << "the link does not do what it is for";
  end_loads();
  const History asked = history();
  for (const Event& event : asked.events)
    EXPECT_TRUE(event.ok() || event.op == Op::kName) << event.to_string();
  EXPECT_GT(asked.events.size(), 500u);
  EXPECT_EQ(asked.lives.size(), 4u);
  network_->heal();
  expect_promises_kept(2);
}

}  // namespace
}  // namespace runtime::test
