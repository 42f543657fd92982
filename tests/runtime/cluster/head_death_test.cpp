// The head's process dies under load.
#include "fixture.h"

namespace runtime::test {
namespace {

class HeadDeathTest : public NetworkTest {};

TEST_F(HeadDeathTest, CallsGoOnAndCreationWorksAgainWithinThreeSeconds) {
  start({.machines = 4, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.per_second = 20});
  begin_load(2, {.per_second = 20});
  std::this_thread::sleep_for(2s);
  std::vector<std::int64_t> kills;
  for (int round = 0; round < 2; ++round) {
    const pid_t head = cluster_->head();
    ASSERT_GT(head, 0);
    kills.push_back(now_us());
    ::kill(head, SIGKILL);
    std::this_thread::sleep_for(3500ms);
  }
  end_loads();
  const History asked = history();
  for (std::int64_t kill : kills) {
    const std::int64_t created = first_ok(asked, Op::kCreate, kill);
    ASSERT_GT(created, 0) << "nothing was created after the head's death\n" << asked.excerpt(kill, 40);
    EXPECT_LT(created - kill, 3'000'000) << asked.excerpt(kill, 40);
    RecordProperty("created_after_ms", static_cast<int>((created - kill) / 1000));
    std::printf("creation works again after %lld ms\n", static_cast<long long>((created - kill) / 1000));
  }
  // Calls between living actors did not notice: none failed, none waited.
  std::int64_t slowest = 0;
  for (const Event& event : asked.events) {
    if (event.op != Op::kEcho) continue;
    EXPECT_TRUE(event.ok()) << event.to_string();
    slowest = std::max(slowest, event.end - event.begin - event.stalled);
  }
  std::printf("slowest call between actors: %lld ms\n", static_cast<long long>(slowest / 1000));
  EXPECT_LT(slowest, 1'000'000);
  for (int client = 1; client <= 2; ++client) EXPECT_GT(count_ok(asked, Op::kEcho, kills[0], kills[1]), 200);
  EXPECT_EQ(cluster_->members(3), 4);
  expect_promises_kept(3);
}

}  // namespace
}  // namespace runtime::test
