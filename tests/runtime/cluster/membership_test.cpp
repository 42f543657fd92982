// Membership: the members, the dead, and how soon that is known; what comes back is not what it
// was.
#include "membership_fixture.h"

#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

class MembershipTiming : public MembershipTest {};

TEST_F(MembershipTiming, TheDeathOfAProcessIsSeenWithinTwoSeconds) {
  start({.machines = 4, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 1, .kinds = "ae"});
  ASSERT_TRUE(eventually([&] { return count_ok(history(), Op::kAdd, 0, INT64_MAX) > 5; }, 40s));
  const auto lives = history().lives;
  ASSERT_EQ(lives.size(), 1u);
  const std::int64_t killed = now_us();
  ::kill(lives[0].pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return history().lives.size() == 2; }, 40s, 5ms))
      << "the actor was not started again";
  const std::int64_t took = history().lives[1].begin - killed;
  std::printf("an actor runs again %lld ms after the death of its process\n",
              static_cast<long long>(took / 1000));
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
  ASSERT_TRUE(eventually(
      [&] {
        return history().lives.size() == 4 && count_ok(history(), Op::kAdd, 0, INT64_MAX) > 20;
      },
      40s));
  const std::vector<pid_t> old_workers = cluster_->workers(3);
  network_->isolate(3);
  const int seen = time_until_members(3, 20s, 1);
  std::printf("a partition is seen after %d ms\n", seen);
  // What was there lives on elsewhere, before the cut-off side hears of anything.
  support::hold_for(3s);
  network_->heal();
  expect_back(3, 4);
  EXPECT_TRUE(eventually(
      [&] {
        for (pid_t worker : old_workers) {
          if (::kill(worker, 0) == 0) return false;
        }
        return true;
      },
      40s))
      << "a process of before the partition lives on";
  support::hold_for(1s);  // of load after all that
  end_loads();
  expect_promises_kept(2);
}

}  // namespace
}  // namespace runtime::test
