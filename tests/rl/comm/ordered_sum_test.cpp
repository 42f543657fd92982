// Sums of slices and of rounds that only the class itself has. What every collective does is
// communicator_test.cpp's.
#include "rl/comm/ordered_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"

namespace rl {
namespace {

using runtime::Status;
using Values = std::vector<float>;

// Does it on ranks that are threads; by rank what it returned.
std::vector<Status> on_sum_ranks(int size, const std::function<Status(Links&)>& body) {
  std::vector<std::unique_ptr<Links>> ends = make_thread_links(size);
  std::vector<Status> ended(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      ended[at] = body(*ends[at]);
      ends[at] = nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

void expect_ok(const std::vector<Status>& ended) {
  for (const Status& status : ended) EXPECT_TRUE(status.ok()) << status.to_string();
}

// 1e8, 1, -1e8 of ranks 0, 1, 2: only in that order the sum is 0, for 1 is lost in 1e8.
Values terms_of(int rank, std::size_t count) {
  return Values(count, rank == 0 ? 1e8F : rank == 1 ? 1.0F : -1e8F);
}

OrderedSum<float> sum_over(Links& links, const SumPlan& plan, std::atomic<int>& progress,
                           std::uint64_t operation = 1) {
  return {links, plan, operation, [&progress] { ++progress; }};
}

TEST(OrderedSum, EveryRankHasTheSumInTheOrderOfRanks) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{50}, std::size_t{10'000}}) {
    const SumPlan plan = SumPlan::of_buckets(count, 3, 7);
    std::atomic<int> progress = 0;
    expect_ok(on_sum_ranks(3, [&](Links& links) {
      Values values = terms_of(links.rank(), count);
      const Status summed = sum_over(links, plan, progress).all_reduce(values);
      EXPECT_EQ(values, Values(count, 0.0F)) << count;
      return summed;
    }));
    EXPECT_EQ(progress, 3 * static_cast<int>(plan.buckets())) << "once for each bucket";
  }
}

TEST(OrderedSum, GatheredSlicesAreThoseOfTheirRanks) {
  const std::vector<ArenaRange> homes = {{0, 5}, {5, 5}, {5, 18}};
  const SumPlan plan = SumPlan::of_homes(homes, 6);
  std::atomic<int> progress = 0;
  expect_ok(on_sum_ranks(3, [&](Links& links) {
    Values values(18, static_cast<float>(links.rank()));
    const Status gathered = sum_over(links, plan, progress).all_gather(values);
    Values expected(18, 2.0F);
    std::fill_n(expected.begin(), 5, 0.0F);
    EXPECT_EQ(values, expected) << "of rank " << links.rank();
    return gathered;
  }));
}

// Round by round those add that have something; the values stay until the last one.
TEST(OrderedSum, RoundsAddThoseThatHaveSomething) {
  constexpr std::size_t kCount = 23;
  const SumPlan plan = SumPlan::of_buckets(kCount, 3, 5);
  const std::vector<std::vector<std::uint8_t>> adds = {{0, 0, 0}, {1, 0, 1}, {0, 1, 0}, {0, 0, 0}};
  std::atomic<int> progress = 0;
  expect_ok(on_sum_ranks(3, [&](Links& links) {
    SumRounds<float> rounds;
    Values values;
    for (std::size_t round = 0; round < adds.size(); ++round) {
      const bool last = round + 1 == adds.size();
      const float own = static_cast<float>(100 * round) + static_cast<float>(links.rank());
      values.assign(kCount, own);
      const Status added = sum_over(links, plan, progress, round + 1)
                               .add_round(values, rounds, adds[round], last, /*gathers=*/true);
      if (!added.ok()) return added;
      EXPECT_EQ(values, Values(kCount, last ? 100 + 102 + 201 : own)) << "round " << round;
    }
    EXPECT_TRUE(rounds.carry.empty()) << "as new";
    EXPECT_FALSE(rounds.begun);
    return Status();
  }));
}

TEST(OrderedSum, WithoutGatheringARankHasTheSumOfItsSliceAlone) {
  const std::vector<ArenaRange> homes = {{0, 4}, {4, 10}};
  const SumPlan plan = SumPlan::of_homes(homes, 4);
  const std::vector<std::uint8_t> both = {1, 1}, none = {0, 0};
  std::atomic<int> progress = 0;
  expect_ok(on_sum_ranks(2, [&](Links& links) {
    SumRounds<float> rounds;
    Values values(10, static_cast<float>(links.rank() + 1));
    const Status added = sum_over(links, plan, progress)
                             .add_round(values, rounds, both, /*last=*/true, /*gathers=*/false);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool is_home = (i < 4) == (links.rank() == 0);
      EXPECT_EQ(values[i], is_home ? 3.0F : static_cast<float>(links.rank() + 1)) << i;
    }
    if (!added.ok()) return added;
    const Status empty = sum_over(links, plan, progress, 2)
                             .add_round(values, rounds, none, /*last=*/true, /*gathers=*/true);
    EXPECT_EQ(values, Values(10, 0.0F)) << "a sum of nothing";
    return empty;
  }));
}

// The sum is made in a place of the rank's own, and the values are never written.
TEST(OrderedSum, AKeptSumIsMadeInItsPlace) {
  const std::vector<ArenaRange> homes = {{0, 4}, {4, 10}};
  const SumPlan plan = SumPlan::of_homes(homes, 4);
  const std::vector<std::uint8_t> first = {1, 0}, second = {1, 1};
  std::atomic<int> progress = 0;
  expect_ok(on_sum_ranks(2, [&](Links& links) {
    Values place(plan.elements_of(links.rank()), -9.0F);
    SumRounds<float> rounds{.kept = true, .place = place};
    Values values(10, static_cast<float>(links.rank() + 1));
    Status added = sum_over(links, plan, progress)
                       .add_round(values, rounds, first, /*last=*/false, /*gathers=*/false);
    if (!added.ok()) return added;
    EXPECT_EQ(place, Values(place.size(), 1.0F));
    added = sum_over(links, plan, progress, 2)
                .add_round(values, rounds, second, /*last=*/true, /*gathers=*/false);
    EXPECT_EQ(place, Values(place.size(), 4.0F));
    EXPECT_EQ(values, Values(10, static_cast<float>(links.rank() + 1)));
    return added;
  }));
}

TEST(OrderedSum, ARankThatIsGoneEndsTheSumOfTheOthers) {
  const SumPlan plan = SumPlan::of_buckets(50, 3, 7);
  std::atomic<int> progress = 0;
  const std::vector<Status> ended = on_sum_ranks(3, [&](Links& links) {
    if (links.rank() == 1) return Status();
    Values values = terms_of(links.rank(), 50);
    return sum_over(links, plan, progress).all_reduce(values);
  });
  for (const std::size_t rank : {0, 2})
    EXPECT_EQ(ended[rank].code(), runtime::ErrorCode::kUnavailable) << ended[rank].to_string();
}

}  // namespace
}  // namespace rl
