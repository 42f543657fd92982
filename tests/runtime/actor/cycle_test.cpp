// Calls that wait for each other in a cycle are found and named; calls that only take long are not.
#include <future>

#include "cluster_fixture.h"
#include "cycle_constructors.h"
#include "cycle_relay.h"

namespace runtime::test {
namespace {

class CycleTest : public ClusterTest {
 protected:
  /// Each follows the one before it, and the first the last.
  std::vector<ActorHandle<Link>> ring(std::size_t size, const ActorOptions& options = {}) {
    std::vector<ActorHandle<Link>> links;
    for (std::size_t i = 0; i < size; ++i) links.push_back(make<Link>(options));
    for (std::size_t i = 0; i < size; ++i) {
      const Status status = rt_->get(links[i].call(&Link::follow, links[(i + 1) % size]), 20s);
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
    return links;
  }
  void expect_cycle(const Status& status, ErrorCode code,
                    const std::vector<ActorHandle<Link>>& links, const std::string& method) {
    expect_failure(status, code,
                   {"wait for each other in a cycle", "waits for", method, "max_concurrency"});
    for (const auto& link : links) expect_failure(status, code, {link.id().short_hex()});
  }
  /// The error names both constructors, and neither actor is left.
  void expect_founding_fails(const Founding& plan, const ActorOptions& options, ErrorCode code) {
    expect_failure(rt_->spawn<Founder>(options, plan).status(), code,
                   {"wait for each other in a cycle", "Founder ", "Joiner ", "(constructor)"});
    EXPECT_TRUE(eventually([&] {
      const auto state = rt_->cluster().state();
      return state.ok() && std::ranges::all_of(state->actors, [](const ActorState& actor) {
               return actor.phase == ActorPhase::kDead;
             });
    }));
  }
  /// All serve again.
  void expect_idle(const std::vector<ActorHandle<Link>>& links) {
    for (const auto& link : links) EXPECT_EQ(get(link.call(&Link::pass, 0, 0)), 0);
  }
};

TEST_F(CycleTest, AnActorThatWaitsForItselfIsTold) {
  const auto links = ring(1);
  expect_cycle(rt_->get(links[0].call(&Link::pass, 1, 0), 20s).status(),
               ErrorCode::kInvalidArgument, links, "pass");
  expect_idle(links);
}

TEST_F(CycleTest, ACycleOverTwoAndThreeActorsIsTold) {
  for (const std::size_t size : {2, 3}) {
    const auto links = ring(size);
    expect_cycle(rt_->get(links[0].call(&Link::pass, static_cast<int>(size), 0), 20s).status(),
                 ErrorCode::kInvalidArgument, links, "pass");
    expect_idle(links);
  }
}

TEST_F(CycleTest, ACycleOfWaitsForSeveralCallsIsTold) {
  const auto links = ring(2);
  expect_cycle(rt_->get(links[0].call(&Link::pass_twice), 20s).status(),
               ErrorCode::kInvalidArgument, links, "pass");
  expect_idle(links);
}

TEST_F(CycleTest, ACycleThroughAnObjectThatWaitsForOthersIsTold) {
  const auto links = ring(2);
  expect_cycle(rt_->get(links[0].call(&Link::pass_together), 20s).status(),
               ErrorCode::kInvalidArgument, links, "pass");
  expect_idle(links);
}

TEST_F(CycleTest, ACycleThroughATaskIsTold) {
  const auto links = ring(2, ActorOptions{.cpus = 0});  // else there is no room for the task
  expect_cycle(rt_->get(links[0].call(&Link::pass_by_task), 20s).status(),
               ErrorCode::kInvalidArgument, links, "pass");
  expect_idle(links);
}

TEST_F(CycleTest, AWaitWithALimitOfItsOwnEndsByThatAndNamesTheCycle) {
  const auto links = ring(1);
  expect_cycle(rt_->get(links[0].call(&Link::pass_within, 0, 4000), 20s).status(),
               ErrorCode::kDeadlineExceeded, links, "pass_within");
  expect_cycle(rt_->get(links[0].call(&Link::pass_within, 4000, 0), 20s).status(),
               ErrorCode::kDeadlineExceeded, links, "pass_within");
  expect_idle(links);
}

TEST_F(CycleTest, ACycleThroughAConstructorIsTold) {
  // The second link stands between the constructor and the call that waits for it.
  for (const std::size_t size : {1, 2}) {
    const auto links = ring(size, ActorOptions{.cpus = 0});
    const Status status = rt_->get(links[0].call(&Link::pass_by_constructor, 0), 30s).status();
    expect_cycle(status, ErrorCode::kInvalidArgument, links, "constructor");
    expect_failure(status, ErrorCode::kInvalidArgument, {"Dependent "});
    expect_idle(links);
  }
}

TEST_F(CycleTest, AConstructorsLimitEndsTheCycleAndNamesIt) {
  const auto links = ring(1, ActorOptions{.cpus = 0});
  expect_cycle(rt_->get(links[0].call(&Link::pass_by_constructor, 6000), 30s).status(),
               ErrorCode::kDeadlineExceeded, links, "constructor");
  expect_idle(links);
}

TEST_F(CycleTest, ACycleThroughACoroutineIsTold) {
  const auto links = ring(1);
  for (const std::uint32_t calls : {1, 8}) {
    auto relay = make<Relay>(ActorOptions{.cpus = 0, .max_concurrency = calls});
    const Status status = rt_->get(links[0].call(&Link::pass_by_coroutine, relay, 0), 20s).status();
    expect_cycle(status, ErrorCode::kInvalidArgument, links, "forward");
    expect_failure(status, ErrorCode::kInvalidArgument, {"Relay " + relay.id().short_hex()});
    expect_idle(links);
  }
}

TEST_F(CycleTest, ACoroutineThatAwaitsItsOwnActorIsTold) {
  auto relay = make<Relay>(ActorOptions{.cpus = 0});
  expect_failure(rt_->get(relay.call(&Relay::forward_to_itself, relay), 20s).status(),
                 ErrorCode::kInvalidArgument, {"cycle", "forward_to_itself", "idle"});
  EXPECT_EQ(get(relay.call(&Relay::idle)), 0);
  auto several = make<Relay>(ActorOptions{.cpus = 0, .max_concurrency = 2});
  EXPECT_EQ(get(several.call(&Relay::forward_to_itself, several)), 0);
}

TEST_F(CycleTest, ACoroutineThatBlocksItsActorIsTold) {
  auto relay = make<Relay>(ActorOptions{.cpus = 0});
  const auto links = ring(1);
  expect_failure(rt_->get(links[0].call(&Link::pass_by_blocked, relay), 20s).status(),
                 ErrorCode::kInvalidArgument, {"cycle", "forward_blocked"});
  expect_idle(links);
}

TEST_F(CycleTest, ACoroutineThatAlsoAwaitsATimerIsInNone) {
  auto relay = make<Relay>(ActorOptions{.cpus = 0});
  const auto links = ring(1);
  expect_failure(rt_->get(links[0].call(&Link::pass_by_coroutine, relay, 4000), 20s).status(),
                 ErrorCode::kDeadlineExceeded, {"cycle", "forward"});
  // Those of the link itself are in one; the coroutine's other end is its timer.
  EXPECT_EQ(get(relay.call(&Relay::forward_first, links[0], 100)), -1);
}

TEST_F(CycleTest, CallsThatTakeLongAreNoCycle) {
  const auto links = ring(3);
  EXPECT_EQ(get(links[0].call(&Link::pass, 2, 1500)), 2);
}

TEST_F(CycleTest, AnActorThatRunsSeveralCallsAtOnceIsInNone) {
  const auto links = ring(2, ActorOptions{.max_concurrency = 3});
  EXPECT_EQ(get(links[0].call(&Link::pass, 4, 1100)), 4);
  // One that is full for a while is in none either: its calls end by themselves.
  std::vector<ObjectRef<int>> full;
  for (int i = 0; i < 6; ++i) full.push_back(links[0].call(&Link::pass, 1, 1100));
  for (const auto& ref : full) EXPECT_EQ(get(ref), 1);
}

TEST_F(CycleTest, ACycleOverTwoConstructorsIsTold) {
  for (const bool shared : {false, true}) {
    const ActorOptions options{.name = "founder",
                               .isolation = shared ? Isolation::kShared : Isolation::kProcess};
    expect_founding_fails({.founder = "founder", .shared = shared}, options,
                          ErrorCode::kInvalidArgument);
  }
  // The name is free again.
  const auto founder = make<Founder>(ActorOptions{.name = "founder"}, Founding{});
  EXPECT_EQ(get(founder.call(&Founder::serve)), 7);
}

TEST_F(CycleTest, ACycleOverConstructorsOnTwoNodesIsTold) {
  Command second({STARLING_BIN_DIR "/starling", "start", "--address", address(), "--num-cpus", "2",
                  "--block"});
  const NodeId here = rt_->cluster().node_id();
  NodeId there{};
  ASSERT_TRUE(eventually([&] {
    const auto state = rt_->cluster().state();
    for (const NodeInfo& info : state.ok() ? state->nodes : std::vector<NodeInfo>())
      if (info.node != here) there = info.node;
    return !there.is_none();
  })) << second.output();
  for (const auto& [founder, joiner] : {std::pair(here, there), std::pair(there, here)}) {
    expect_founding_fails({.founder = "founder", .node = joiner},
                          {.name = "founder", .node = founder}, ErrorCode::kInvalidArgument);
  }
}

TEST_F(CycleTest, ACycleOverConstructorsThatFindEachOtherByNameIsTold) {
  const std::vector<ActorOptions> options{{.name = "one"}, {.name = "two"}};
  const auto other = split(std::vector<std::string>{"two", "one"});
  expect_failure(rt_->spawn_group<Seeker>(options, other).status(), ErrorCode::kInvalidArgument,
                 {"cycle", "Seeker \"one\": (constructor)", "Seeker \"two\": (constructor)"});
  const std::string one = "one", two = "two";
  expect_failure(rt_->spawn<Twin>({.name = one, .get_if_exists = true}, one, two).status(),
                 ErrorCode::kInvalidArgument, {"cycle", "Twin ", "(constructor)"});
}

TEST_F(CycleTest, ALimitEndsACycleOverTwoConstructorsAndNamesIt) {
  const ActorOptions options{.name = "founder"};
  expect_founding_fails({.founder = "founder", .create_ms = 6000}, options,
                        ErrorCode::kDeadlineExceeded);
  expect_founding_fails({.founder = "founder", .find_ms = 4000}, options,
                        ErrorCode::kDeadlineExceeded);
}

TEST_F(CycleTest, AConstructorThatTakesLongIsInNone) {
  auto slow = std::async(std::launch::async, [&] {
    return rt_->spawn<Founder>(ActorOptions{.name = "slow"}, Founding{.rest_ms = 4000});
  });
  const auto joiner = make<Joiner>({}, Founding{.founder = "slow"});
  EXPECT_EQ(get(joiner.call(&Joiner::heard)), 7);
  EXPECT_TRUE(slow.get().ok());
}

TEST_F(CycleTest, ACycleThroughAConstructorThatRunsAgainIsTold) {
  auto visited = make<Visited>();
  auto returner = make<Returner>(ActorOptions{.max_restarts = 1}, visited);
  ASSERT_TRUE(rt_->get(visited.call(&Visited::know, returner), 20s).ok());
  ASSERT_TRUE(rt_->kill(returner, Restarts::kAllowed).ok());
  const std::string heard = get(returner.call(&Returner::heard));
  const std::string constructor = "Returner " + returner.id().short_hex() + ": (constructor)";
  EXPECT_NE(heard.find("cycle"), std::string::npos) << heard;
  EXPECT_NE(heard.find(constructor + " waits for Visited"), std::string::npos) << heard;
  EXPECT_EQ(get(returner.call(&Returner::answer)), 7);
}

}  // namespace
}  // namespace runtime::test
