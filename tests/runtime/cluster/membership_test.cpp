// Who is a member, who is dead, and how soon that is known; what comes back is not what it was.
#include "fixture.h"

namespace runtime::test {
namespace {

class MembershipTest : public NetworkTest {
 protected:
  /// Milliseconds until machine `asked` hears that `count` nodes live; fails after `patience`.
  int time_until_members(int count, std::chrono::milliseconds patience, int asked) {
    const std::int64_t begin = now_us();
    const bool seen = eventually(patience, [&] { return cluster_->members(asked) == count; }, 10ms);
    const int took = static_cast<int>((now_us() - begin) / 1000);
    EXPECT_TRUE(seen) << "after " << took << " ms there are " << cluster_->members(asked) << " members instead of " << count;
    return took;
  }
  /// The node of a machine is a member again: by itself, or, where it has ended, started by whoever watches over it.
  void expect_back(int machine, int members) {
    const bool back = eventually(30s, [&] {
      if (!cluster_->runs(machine)) expect_started(machine);
      return cluster_->members(0) == members;
    }, 200ms);
    EXPECT_TRUE(back) << cluster_->members(0);
  }
  /// The incarnation of the tally that last began, and how many have.
  std::pair<std::uint64_t, int> incarnation(const std::string& tally) const {
    std::pair<std::uint64_t, int> newest{0, 0};
    for (const Life& life : history().lives) {
      if (life.key != tally) continue;
      newest.first = std::max(newest.first, life.incarnation);
      ++newest.second;
    }
    return newest;
  }
};

TEST_F(MembershipTest, TheDeathOfAProcessIsSeenWithinTwoSeconds) {
  start({.machines = 4, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 1, .kinds = "ae"});
  ASSERT_TRUE(eventually(10s, [&] { return count_ok(history(), Op::kAdd, 0, INT64_MAX) > 5; }));
  const auto lives = history().lives;
  ASSERT_EQ(lives.size(), 1u);
  const std::int64_t killed = now_us();
  ::kill(lives[0].pid, SIGKILL);
  ASSERT_TRUE(eventually(10s, [&] { return history().lives.size() == 2; }, 5ms)) << "the actor was not started again";
  const std::int64_t took = history().lives[1].begin - killed;
  std::printf("an actor runs again %lld ms after the death of its process\n", static_cast<long long>(took / 1000));
  EXPECT_LT(took, 2'000'000);

  cluster_->kill_node(3);
  const int seen = time_until_members(3, 10s, 1);
  std::printf("a dead node is seen after %d ms\n", seen);
  EXPECT_LT(seen, 2000);
  expect_started(3);
  EXPECT_TRUE(cluster_->wait_for_members(4, 5s));
  end_loads();
  expect_promises_kept(1);
}

TEST_F(MembershipTest, ANodeThatComesBackAfterItsLeaseIsFenced) {
  ClusterOptions options{.machines = 4, .arguments = {"--num-cpus", "4"}};
  start(options);
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 4, .per_second = 10, .kinds = "aep"});
  begin_load(3, {.tallies = 4, .per_second = 10, .kinds = "ae"});
  ASSERT_TRUE(eventually(20s, [&] { return history().lives.size() == 4 && count_ok(history(), Op::kAdd, 0, INT64_MAX) > 20; }));
  const std::vector<pid_t> old_workers = cluster_->workers(3);
  network_->isolate(3);
  const int seen = time_until_members(3, 20s, 1);
  std::printf("a partition is seen after %d ms\n", seen);
  EXPECT_LT(seen, 10'000);
  // What was there lives on elsewhere, before the cut-off side hears of anything.
  std::this_thread::sleep_for(3s);
  network_->heal();
  expect_back(3, 4);
  EXPECT_TRUE(eventually(10s, [&] {
    for (pid_t worker : old_workers) {
      if (::kill(worker, 0) == 0) return false;
    }
    return true;
  })) << "a process of before the partition lives on";
  std::this_thread::sleep_for(1s);
  end_loads();
  expect_promises_kept(2);
}

TEST_F(MembershipTest, AHeadThatWasStoppedForLongerThanTheLeaseDeclaresNobodyDead) {
  start({.machines = 3, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 2, .per_second = 10, .kinds = "ae"});
  ASSERT_TRUE(eventually(20s, [&] { return history().lives.size() == 2; }));
  const pid_t head = cluster_->head();
  ::kill(head, SIGSTOP);
  std::this_thread::sleep_for(12s);
  ::kill(head, SIGCONT);
  std::this_thread::sleep_for(2s);
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
  ASSERT_TRUE(eventually(20s, [&] { return history().lives.size() == 2; }));
  for (int machine : {1, 2}) {
    ::kill(cluster_->node(machine), SIGSTOP);
    std::this_thread::sleep_for(4s);
    ::kill(cluster_->node(machine), SIGCONT);
  }
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(cluster_->members(0), 3);
  EXPECT_EQ(history().lives.size(), 2u);
  end_loads();
  expect_promises_kept(2);
}

}  // namespace
}  // namespace runtime::test
