// Shared actors: many in one worker process, each with its own line of calls, its own end and its
// own error.
#include <future>
#include <set>

#include "cluster_fixture.h"
#include "tests/support/gate.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

const ActorOptions kShared{.isolation = Isolation::kShared};

class SharedTest : public ClusterTest {
 protected:
  ActorGroup<Counter> shared_counters(std::size_t size, int start = 0) {
    auto group = rt_->spawn_group<Counter>(size, kShared, start);
    EXPECT_TRUE(group.ok()) << group.status().to_string();
    return group.value_or(ActorGroup<Counter>());
  }
};

TEST_F(SharedTest, ManyActorsLiveInOneProcessWithStateOfTheirOwn) {
  auto group = shared_counters(50, 7);
  ASSERT_EQ(group.size(), 50u);
  auto own = counter();
  std::set<std::int32_t> pids;
  std::vector<ObjectRef<int>> refs;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    pids.insert(group[rank].pid());
    for (int i = 0; i < 20; ++i)
      refs.push_back(group[rank].call(&Counter::add, static_cast<int>(rank)));
  }
  EXPECT_EQ(pids.size(), 1u);
  EXPECT_FALSE(pids.contains(own.pid())) << "an actor with its own process shares it with none";
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(get(refs[rank * 20 + static_cast<std::size_t>(i)]),
                7 + (i + 1) * static_cast<int>(rank));
  }
}

TEST_F(SharedTest, ADriverHasOneConnectionToAProcess) {
  auto group = shared_counters(200);
  ASSERT_EQ(group.size(), 200u);
  auto sockets = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      count += std::filesystem::read_symlink(entry.path(), error).string().starts_with("socket:")
                   ? 1
                   : 0;
    }
    return count;
  };
  const std::size_t before = sockets();
  ASSERT_TRUE(rt_->objects().gather(group.call(&Counter::add, 1)).ok());
  EXPECT_LE(sockets(), before + 1);
}

TEST_F(SharedTest, ACrashTellsEachCallerOfItsOwnActor) {
  auto group = shared_counters(20);
  ASSERT_EQ(group.size(), 20u);
  std::vector<ObjectRef<int>> waiting;
  const support::Gate gate(folder_.file("gate"));
  for (const auto& member : group) waiting.push_back(member.call(&Counter::pass, gate.path()));
  ASSERT_TRUE(gate.is_reached());
  ASSERT_EQ(::kill(group[0].pid(), SIGKILL), 0);
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    expect_failure(
        rt_->get(waiting[rank], 20s).status(), ErrorCode::kActorDied,
        {"Counter", group[rank].id().short_hex(), "SIGKILL", std::to_string(group[rank].pid())});
  }
  expect_failure(rt_->get(group[3].call(&Counter::total)).status(), ErrorCode::kActorDied,
                 {group[3].id().short_hex()});
  auto next = rt_->spawn<Counter>(kShared, 5);
  ASSERT_TRUE(next.ok()) << next.status().to_string();
  EXPECT_NE(next->pid(), group[0].pid());
  EXPECT_EQ(get(next->call(&Counter::total)), 5);
}

TEST_F(SharedTest, KillEndsOneAndLeavesTheOthers) {
  auto group = shared_counters(3);
  ASSERT_EQ(group.size(), 3u);
  ASSERT_EQ(get(group[1].call(&Counter::add, 1)), 1);
  ASSERT_TRUE(rt_->kill(group[1]).ok());
  expect_failure(rt_->get(group[1].call(&Counter::total)).status(), ErrorCode::kActorDied,
                 {group[1].id().short_hex(), "killed on request"});
  EXPECT_EQ(get(group[0].call(&Counter::add, 2)), 2);
  EXPECT_EQ(get(group[2].call(&Counter::add, 3)), 3);
}

TEST_F(SharedTest, CallsInLineOfAKilledActorFail) {
  auto actor = rt_->spawn<Counter>(kShared, 0);
  ASSERT_TRUE(actor.ok());
  const support::Gate gate(folder_.file("gate"));
  auto running = actor->call(&Counter::pass, gate.path());
  auto behind = actor->call(&Counter::add, 1);
  ASSERT_TRUE(gate.is_reached());
  auto killing = std::async(std::launch::async, [&] { return rt_->kill(*actor); });
  support::hold_for(
      500ms);  // the request is on its way to the actor, and nothing shows its arrival
  gate.open();
  EXPECT_TRUE(killing.get().ok());
  expect_failure(rt_->get(behind).status(), ErrorCode::kActorDied, {"killed on request"});
  EXPECT_EQ(get(running), 1)
      << "what runs in a shared process cannot be interrupted; it ends by itself";
}

TEST_F(SharedTest, AFailedConstructorIsItsSpawnersErrorAlone) {
  auto good = rt_->spawn<Picky>(kShared, 3);
  ASSERT_TRUE(good.ok()) << good.status().to_string();
  expect_failure(rt_->spawn<Picky>(kShared, -1).status(), ErrorCode::kInvalidArgument,
                 {"-1 is below zero"});
  expect_failure(rt_->spawn<Picky>(kShared, 0).status(), ErrorCode::kTaskFailed,
                 {"not even refused politely"});
  EXPECT_EQ(get(good->call(&Picky::value)), 3);
}

TEST_F(SharedTest, ActorsThatWaitForEachOtherDoNotStarve) {
  // Far more methods wait for another shared actor of the same process than it has threads to run
  // actors on.
  constexpr std::size_t kPairs = 40;
  auto counters = shared_counters(kPairs);
  auto brokers = rt_->spawn_group<Broker>(kPairs, kShared, "broker");
  ASSERT_TRUE(brokers.ok()) << brokers.status().to_string();
  std::vector<ObjectRef<int>> slow;
  std::vector<ObjectRef<int>> sums;
  for (std::size_t i = 0; i < kPairs; ++i) {
    slow.push_back(counters[i].call(&Counter::sleep_ms, 20));
    sums.push_back((*brokers)[i].call(&Broker::add_through, counters[i], static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < kPairs; ++i) EXPECT_EQ(get(sums[i]), static_cast<int>(i));
}

TEST_F(SharedTest, AnEnvironmentOfItsOwnIsAProcessOfItsOwn) {
  auto plain = rt_->spawn<Counter>(kShared, 0);
  ActorOptions options = kShared;
  options.env["FLAVOUR"] = "salty";
  auto salty = rt_->spawn<Counter>(options, 0);
  ASSERT_TRUE(plain.ok() && salty.ok());
  EXPECT_NE(plain->pid(), salty->pid());
  EXPECT_EQ(get(salty->call(&Counter::variable, "FLAVOUR")), "salty");
  EXPECT_EQ(get(plain->call(&Counter::variable, "FLAVOUR")), "");
}

TEST_F(SharedTest, NamesHandlesAndObjectsWorkAsForOtherActors) {
  ActorOptions options = kShared;
  options.name = "shared one";
  auto made = rt_->spawn<Broker>(options, "the name");
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  auto found = rt_->get_actor<Broker>("shared one");
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  auto numbers = found->call(&Broker::make, 100'000, 0.5f);
  EXPECT_EQ(get(made->call(&Broker::sum, numbers)), 50'000.0);
  auto other = shared_counters(1, 10);
  EXPECT_EQ(get(broker("process").call(&Broker::add_through, other[0], 5)), 15);
}

TEST_F(SharedTest, ThousandsAreCreatedCalledAndKilled) {
  constexpr std::size_t kSize = 5000;
  auto group = shared_counters(kSize, 1);
  ASSERT_EQ(group.size(), kSize);
  auto totals = rt_->objects().gather(group.call(&Counter::add, 1), 60s);
  ASSERT_TRUE(totals.ok()) << totals.status().to_string();
  EXPECT_EQ(*totals, std::vector<int>(kSize, 2));
  ASSERT_TRUE(rt_->kill(group, 60s).ok());
  auto state = rt_->cluster().state();
  ASSERT_TRUE(state.ok());
  for (const ActorState& actor : state->actors) EXPECT_EQ(actor.phase, ActorPhase::kDead);
}

}  // namespace
}  // namespace runtime::test
