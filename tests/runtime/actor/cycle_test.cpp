// Calls that wait for each other in a cycle are found and named; calls that only take long are not.
#include "cluster_fixture.h"
#include "cycle_relay.h"
#include "runtime/call/awaited_call.h"
#include "runtime/call/blocked_calls.h"

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

/// A call that is awaited, and remembers the cycle that it was part of.
struct FakeCall final : AwaitedCall {
  explicit FakeCall(std::string its_name) : name(std::move(its_name)) {}
  std::string describe() const override { return name; }
  std::string constructor() const override { return "none"; }
  bool has_own_limit() const override { return false; }
  void on_cycle(const std::shared_ptr<Producer>&, const std::string& text, bool) override {
    cycle = text;
  }
  Status cancel(const std::shared_ptr<Producer>&, CancelMode) override { return {}; }

  const std::string name;
  std::string cycle;
};

// A coroutine awaits one call; meanwhile something else that it started blocks the actor for
// another.
TEST(BlockedCalls, AWaitOfACallDoesNotTakeThePlaceOfAnotherOfIt) {
  constexpr std::uint64_t kSession = 7;
  BlockedCalls table(kSession);
  const std::string class_name = "Relay", method = "forward";
  const ServedCall served{{ActorId::random(), nullptr, 3}, &class_name, &method};
  const auto awaited = std::make_shared<FakeCall>("Link 1: pass");
  const auto blocking = std::make_shared<FakeCall>("Link 2: pass");
  const BlockedCalls::Registered waits(table, served, {awaited}, false);
  const auto found = [&](std::uint64_t number, const std::string& call) {
    table.on_waits(served.key, {{kSession, number, served.describe(), call, false},
                                {kSession + 1, 1, call, served.describe(), false}});
  };
  {
    const BlockedCalls::Registered blocks(table, served, {blocking}, false);
    found(2, blocking->name);
    EXPECT_NE(blocks.cycle(), "");
    EXPECT_NE(blocking->cycle, "");
    EXPECT_EQ(waits.cycle(), "");
  }
  found(1, awaited->name);
  EXPECT_NE(waits.cycle(), "");
  EXPECT_NE(awaited->cycle.find("Relay"), std::string::npos) << awaited->cycle;
}

TEST(DescribeCycle, NamesTheCallsAndTheCure) {
  const std::string text =
      describe_cycle({{1, 1, "A 12: f", "B 34: g", false}, {2, 1, "B 34: h", "A 12: k", false}});
  EXPECT_NE(text.find("A 12: f waits for B 34: g; B 34: h waits for A 12: k."), std::string::npos)
      << text;
  EXPECT_NE(text.find("max_concurrency"), std::string::npos) << text;
}

}  // namespace
}  // namespace runtime::test
