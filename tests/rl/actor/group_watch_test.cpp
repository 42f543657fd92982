// A call of a group is watched on a clock of the test's, with ranks that say what the test wants.
#include "rl/actor/group_watch.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{60};

/// Ranks that stand where `at` says, in a call that takes as long as `done` says.
struct FakeGroup {
  GroupCall call() {
    return {.role = "Policy",
            .ranks = pulses.size(),
            .wait =
                [this](milliseconds limit) {
                  now += limit;
                  if (at) at(now - begun);
                  return done;
                },
            .finished = [this] { return finished; },
            .ask =
                [this](const std::vector<bool>& asked, milliseconds) {
                  ++asks;
                  std::vector<std::optional<Pulse>> said(pulses.size());
                  for (std::size_t rank = 0; rank < pulses.size(); ++rank)
                    if (asked[rank]) said[rank] = pulses[rank];
                  return said;
                },
            .abort = [this](const std::string& why) { aborted.push_back(why); },
            .now = [this] { return now; }};
  }
  runtime::Status watch() { return watch_group(call(), kPatience, "trainer.rank_timeout"); }

  const GroupCall::Time begun{};
  GroupCall::Time now{};
  std::vector<std::optional<Pulse>> pulses{Pulse(), Pulse(), Pulse()};
  std::vector<bool> finished{false, false, false};
  std::function<void(GroupCall::Time::duration since)> at;
  bool done = false;
  int asks = 0;
  std::vector<std::string> aborted;
};

Pulse waits(std::uint64_t operation) {
  return {.steps = 3, .operations = operation, .waiting = true, .where = "all-reduce of gradients"};
}

TEST(GroupWatch, AsksNoRankInACallThatEndsSoon) {
  FakeGroup group;
  group.done = true;
  EXPECT_TRUE(group.watch().ok());
  EXPECT_EQ(group.asks, 0);
}

TEST(GroupWatch, WaitsForARankThatComputesAnHour) {
  FakeGroup group;
  group.pulses = {waits(1), waits(1), Pulse{.steps = 1, .where = "layer 1"}};
  group.at = [&](auto since) {
    group.pulses[2]->steps = 1 + static_cast<std::uint64_t>(since / seconds(50));
    group.done = since > seconds(3600);
  };
  EXPECT_TRUE(group.watch().ok());
  EXPECT_TRUE(group.aborted.empty());
}

TEST(GroupWatch, NoRankIsHeldUpByALongCallWithoutCollectives) {
  FakeGroup group;
  group.at = [&](auto since) { group.done = since > seconds(3600); };
  EXPECT_TRUE(group.watch().ok());
  EXPECT_TRUE(group.aborted.empty());
}

TEST(GroupWatch, ARankThatNoLongerAnswersEndsTheCallWithItsNameAndTheKey) {
  FakeGroup group;
  group.pulses = {waits(1), Pulse{.steps = 9, .where = "backward of layer 2"}, waits(1)};
  group.at = [&](auto since) {
    if (since > seconds(10)) group.pulses[1].reset();
  };
  const runtime::Status held = group.watch();
  EXPECT_EQ(held.code(), runtime::ErrorCode::kDeadlineExceeded);
  for (const char* part : {"Policy rank 1 of 3", "backward of layer 2", "trainer.rank_timeout"})
    EXPECT_NE(held.message().find(part), std::string::npos) << held.message();
  ASSERT_EQ(group.aborted.size(), 1u);
  EXPECT_EQ(group.aborted[0], held.message());
  EXPECT_LT(group.now - group.begun, kPatience + seconds(25));
}

TEST(GroupWatch, ARankThatHasAnsweredIsAskedNoMore) {
  FakeGroup group;
  group.pulses[0].reset();  // stopped, but through
  group.finished[0] = true;
  group.at = [&](auto since) { group.done = since > seconds(600); };
  EXPECT_TRUE(group.watch().ok());
}

TEST(GroupWatch, AShortPatienceIsMeasuredWell) {
  EXPECT_EQ(watch_period(seconds(60)), seconds(5));
  EXPECT_LE(watch_period(seconds(3)), milliseconds(500));
  EXPECT_GE(watch_period(milliseconds(10)), milliseconds(100));
}

}  // namespace
}  // namespace rl
