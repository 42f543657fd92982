// Waits for several results: as_completed, when_all, gather and its kin, and groups called as one.
#include <map>
#include <numeric>
#include <set>

#include "cluster_fixture.h"
#include "tests/support/gate.h"

namespace runtime::test {
namespace {

using WaitingTest = ClusterTest;
class WaitingTiming : public ClusterTest {};

TEST_F(WaitingTest, AsCompletedYieldsResultsInTheOrderInWhichTheyCome) {
  auto slow = counter();
  auto fast = counter();
  const support::Gate first(folder_.file("first")), second(folder_.file("second")),
      last(folder_.file("last"));
  std::vector<ObjectRef<int>> refs{slow.call(&Counter::pass, last.path()),
                                   fast.call(&Counter::pass, first.path()), ObjectRef<int>(),
                                   fast.call(&Counter::pass, second.path())};
  std::vector<std::size_t> order;
  for (const auto& [index, ref] : rt_->objects().as_completed(refs, 20s)) {
    order.push_back(index);
    EXPECT_EQ(ref, refs[index]);
    if (index == 2)
      expect_failure(rt_->get(ref).status(), ErrorCode::kInvalidArgument, {"refers to nothing"});
    else
      EXPECT_TRUE(ref.is_ready());
    if (index == 2) first.open();
    if (index == 1) second.open();
    if (index == 3) last.open();
  }
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 1, 3, 0}));
}

TEST_F(WaitingTest, AsCompletedEndsAtItsDeadlineAndMayBeAbandoned) {
  auto actor = counter();
  const support::Gate gate(folder_.file("gate"));
  std::vector<ObjectRef<int>> refs{actor.call(&Counter::add, 1),
                                   actor.call(&Counter::pass, gate.path())};
  EXPECT_EQ(get(refs[0]), 1);
  auto completions = rt_->objects().as_completed(refs, 300ms);
  EXPECT_EQ(completions.next()->index, 0u);
  EXPECT_FALSE(completions.next().has_value());
  EXPECT_EQ(completions.remaining(), 1u);
  for (int i = 0; i < 100; ++i) {
    auto abandoned = rt_->objects().as_completed(refs);
    EXPECT_EQ(abandoned.next()->index, 0u);
  }
  gate.open();
  EXPECT_EQ(get(refs[1]), 1) << "settling does not touch those that were abandoned";
}

TEST_F(WaitingTiming, AsCompletedTakesThousandsOneByOneInLinearTime) {
  auto actor = counter();
  const auto take_all = [&](std::size_t count) {
    std::vector<ObjectRef<int>> refs;
    for (std::size_t i = 0; i < count; ++i) refs.push_back(actor.call(&Counter::add, 1));
    auto start = std::chrono::steady_clock::now();
    std::set<std::size_t> seen;
    for (const auto& [index, ref] : rt_->objects().as_completed(std::move(refs), 60s))
      seen.insert(index);
    EXPECT_EQ(seen.size(), count);
    return std::chrono::steady_clock::now() - start;
  };
  take_all(500);
  const auto few = std::max<std::chrono::nanoseconds>(take_all(2'000), 1ms);
  // 20 times as many; a quadratic cost would take 400 times as long.
  EXPECT_LT(take_all(40'000), few * 200);
}

TEST_F(WaitingTest, AsCompletedLetsGoOfWhatItHandsOut) {
  auto loan = std::make_shared<int>(0);
  ObjectValue value;
  value.loan = loan;
  std::vector<ObjectRef<void>> refs;
  refs.emplace_back(ObjectState::ready(nullptr, std::move(value)));
  auto completions = rt_->objects().as_completed(std::move(refs));
  EXPECT_EQ(loan.use_count(), 2);
  completions.next();
  EXPECT_EQ(loan.use_count(), 1);
}

TEST_F(WaitingTest, WhenAllSettlesWithTheLastOrTheFirstFailure) {
  auto slow = counter();
  auto fast = counter();
  auto name = broker("n");
  const support::Gate gate(folder_.file("gate")), late_gate(folder_.file("late"));
  auto quick = fast.call(&Counter::add, 1);
  auto all = rt_->objects().when_all(std::vector{slow.call(&Counter::pass, gate.path()), quick});
  EXPECT_EQ(get(quick), 1);
  EXPECT_FALSE(all.is_ready());
  gate.open();
  EXPECT_TRUE(rt_->get(all, 10s).ok());
  auto late = slow.call(&Counter::pass, late_gate.path());
  auto mixed =
      rt_->objects().when_all(late, name.call(&Broker::name), fast.call(&Counter::refuse, "full"));
  expect_failure(rt_->get(mixed, 10s), ErrorCode::kResourceExhausted, {"rank 2", "full"});
  EXPECT_FALSE(late.is_ready()) << "a failure ends the wait";
  late_gate.open();
  EXPECT_TRUE(rt_->get(rt_->objects().when_all(std::vector<ObjectRef<int>>{})).ok());
  expect_failure(rt_->get(rt_->objects().when_all(ObjectRef<int>())), ErrorCode::kInvalidArgument,
                 {"refers to nothing"});
}

TEST_F(WaitingTest, WhenAllNestsAsDeepAsOneLikes) {
  auto slow = counter();
  const support::Gate gate(folder_.file("gate"));
  ObjectRef<void> all = rt_->objects().when_all(slow.call(&Counter::pass, gate.path()));
  for (int i = 0; i < 200'000; ++i) all = rt_->objects().when_all(std::vector{all});
  EXPECT_FALSE(all.is_ready());
  gate.open();
  EXPECT_TRUE(rt_->get(all, 30s).ok());
  ObjectRef<void> failed = rt_->objects().when_all(slow.call(&Counter::refuse, "full"));
  for (int i = 0; i < 1000; ++i) failed = rt_->objects().when_all(std::vector{failed});
  expect_failure(rt_->get(failed, 30s), ErrorCode::kResourceExhausted, {"full"});
}

TEST_F(WaitingTest, WhenAllAsAnArgumentHoldsACallBack) {
  auto slow = counter();
  auto actor = counter();
  const support::Gate gate(folder_.file("gate"));
  auto done = rt_->objects().when_all(
      std::vector{slow.call(&Counter::add, 1), slow.call(&Counter::pass, gate.path())});
  auto held = actor.call(&Counter::add_after, done, 3);
  ASSERT_TRUE(gate.is_reached());
  EXPECT_EQ(rt_->get(held, 20ms).status().code(), ErrorCode::kDeadlineExceeded);
  gate.open();
  EXPECT_EQ(get(held), 3);
}

TEST_F(WaitingTest, GatherReturnsAtTheFirstFailure) {
  auto slow = counter();
  auto fast = counter();
  const support::Gate gate(folder_.file("gate"));
  auto late = slow.call(&Counter::pass, gate.path());
  std::vector<ObjectRef<void>> refs{ObjectRef<void>(late.state()),
                                    fast.call(&Counter::refuse, "full")};
  expect_failure(rt_->objects().gather(refs, 20s), ErrorCode::kResourceExhausted,
                 {"rank 1", "full"});
  EXPECT_FALSE(late.is_ready());
  expect_failure(rt_->objects().gather(std::vector{late, ObjectRef<int>()}).status(),
                 ErrorCode::kInvalidArgument, {"rank 1"});
  auto quick = fast.call(&Counter::add, 1);
  EXPECT_EQ(get(quick), 1);
  expect_failure(rt_->objects().gather(std::vector{quick, late}, 50ms).status(),
                 ErrorCode::kDeadlineExceeded, {"rank 1"});
  gate.open();
}

TEST_F(WaitingTest, GatherEachSaysWhatBecameOfEach) {
  auto group = rt_->spawn_group<Member>(3, {}, split(std::vector<int>{0, 1, 2}), "m");
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  auto results = rt_->objects().gather_each(group->call(&Member::fail_on, 1), 20s);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(*results[0], 0);
  expect_failure(results[1].status(), ErrorCode::kInvalidArgument, {"not with me"});
  EXPECT_EQ(*results[2], 2);
  auto actor = counter();
  auto statuses = rt_->objects().gather_each(
      std::vector{actor.call(&Counter::refuse, "a"), actor.call(&Counter::print, "b")}, 20s);
  EXPECT_EQ(statuses[0].code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(statuses[1].ok());
}

TEST_F(WaitingTest, GroupsTakeDispatchAndCollectFunctions) {
  auto group = rt_->spawn_group<Member>(
      3, {}, by_rank([](std::size_t rank) { return static_cast<int>(rank) + 1; }), "m");
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  auto sum = [](const std::vector<int>& values) {
    return std::accumulate(values.begin(), values.end(), 0);
  };
  // Members multiply by 1, 2, 3.
  auto refs = group->call(&Member::times,
                          by_rank([](std::size_t rank) { return static_cast<int>(rank) * 100; }));
  EXPECT_EQ(*rt_->objects().collect(refs, sum, 20s), 0 + 200 + 600);
  auto refuse = [](const std::vector<int>&) -> Result<std::string> {
    return not_found("nothing to merge");
  };
  expect_failure(rt_->objects().collect(refs, refuse).status(), ErrorCode::kNotFound,
                 {"nothing to merge"});
  expect_failure(rt_->objects().collect(group->call(&Member::fail_on, 2), sum).status(),
                 ErrorCode::kInvalidArgument, {"rank 1"});
  // An even split and its reverse.
  std::vector<int> batch(10);
  std::iota(batch.begin(), batch.end(), 0);
  auto parts = split_evenly(batch, group->size());
  EXPECT_EQ(parts.parts[0].size(), 4u);
  EXPECT_EQ(parts.parts[2], (std::vector<int>{7, 8, 9}));
  auto scaled = rt_->objects().collect(group->call(&Member::scale, parts), concatenate<int>, 20s);
  ASSERT_TRUE(scaled.ok()) << scaled.status().to_string();
  EXPECT_EQ(*scaled, (std::vector<int>{0, 1, 2, 3, 8, 10, 12, 21, 24, 27}));
}

TEST_F(WaitingTest, AGroupStoresItsLargeArgumentsOnce) {
  auto group = rt_->spawn_group<Broker>(4, {}, "b");
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  // Five copies of 150 MB would not fit into the store.
  std::vector<float> values(37'500'000, 1.0F);
  auto refs = group->call(&Broker::where, values);
  auto seen = rt_->objects().gather(refs, 60s);
  ASSERT_TRUE(seen.ok()) << seen.status().to_string();
  EXPECT_EQ(std::set<std::string>(seen->begin(), seen->end()).size(), 1u)
      << "all members read the same bytes of the store";
}

TEST_F(WaitingTest, AGroupHasOneDeadline) {
  auto group = rt_->spawn_group<Counter>(3, {}, 0);
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  const support::Gate gate(folder_.file("gate"));
  auto refs = group->call(CallOptions{.timeout = 200ms}, &Counter::pass, gate.path());
  expect_failure(rt_->objects().gather(refs).status(), ErrorCode::kDeadlineExceeded,
                 {"rank 0", "pass"});
  for (const auto& result : rt_->objects().gather_each(refs))
    EXPECT_EQ(result.status().code(), ErrorCode::kDeadlineExceeded);
  gate.open();  // not before: the calls have ended though no method has
}

}  // namespace
}  // namespace runtime::test
