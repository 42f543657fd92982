// Sums of slices in one exchange, against sums by buckets. Ranks are threads.
#include "rl/comm/slice_sums.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "rl/comm/thread_links.h"

namespace rl {
namespace {

void on_slice_ranks(int count, const std::function<void(Communicator&)>& body) {
  auto links = make_thread_links(count);
  std::vector<std::thread> threads;
  for (auto& own : links) {
    threads.emplace_back(
        [&body, mine = std::make_unique<Communicator>(std::move(own))] { body(*mine); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Values whose sum depends on the order.
std::vector<float> slice_values(int rank, int round) {
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i)
    values.push_back(static_cast<float>((i * 37 + rank * 101 + round * 7) % 997) / 3.0F +
                     (rank == 1 ? 1e6F : 0.0F));
  return values;
}

// Two stretches; of the second one rank 1 has nothing.
const std::vector<ArenaRange> kFirst = {{0, 1000}, {1000, 3100}, {3100, 3100 + 1}};
const std::vector<ArenaRange> kSecond = {{3101, 4000}, {4000, 4000}, {4000, 5000}};

struct Places {
  std::vector<float> first, second;
  SumRounds<float> of_first, of_second;

  explicit Places(int rank)
      : first(static_cast<std::size_t>(kFirst[static_cast<std::size_t>(rank)].size())),
        second(static_cast<std::size_t>(kSecond[static_cast<std::size_t>(rank)].size())) {
    of_first.kept = of_second.kept = true;
    of_first.place = first;
    of_second.place = second;
  }
};

TEST(SliceSums, HaveTheBitsOfSumsByBuckets) {
  const std::vector<std::vector<std::uint8_t>> rounds = {{1, 0, 1}, {0, 0, 0}, {1, 1, 1}};
  on_slice_ranks(3, [&](Communicator& communicator) {
    Places together(communicator.rank()), by_buckets(communicator.rank());
    SliceSums sums(communicator);
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      const bool last = round + 1 == rounds.size();
      std::vector<float> values = slice_values(communicator.rank(), static_cast<int>(round));
      // Of the second stretch other ranks add.
      const std::vector<std::uint8_t> others = {0, 1, static_cast<std::uint8_t>(round % 2)};
      sums.begin(
          values,
          {{kFirst, rounds[round], &together.of_first}, {kSecond, others, &together.of_second}},
          "values");
      EXPECT_TRUE(sums.is_under_way());
      ASSERT_TRUE(communicator.barrier().ok()) << "other calls may come between";
      ASSERT_TRUE(sums.finish(last).ok());
      EXPECT_FALSE(sums.is_under_way());
      ASSERT_TRUE(
          communicator.reduce_round(values, by_buckets.of_first, rounds[round], last, kFirst).ok());
      ASSERT_TRUE(
          communicator.reduce_round(values, by_buckets.of_second, others, last, kSecond).ok());
      EXPECT_EQ(together.first, by_buckets.first) << "round " << round;
      EXPECT_EQ(together.second, by_buckets.second) << "round " << round;
    }
  });
}

TEST(SliceSums, WhatIsNotUnderWayEndsAtOnce) {
  on_slice_ranks(2, [](Communicator& communicator) {
    SliceSums sums(communicator);
    EXPECT_TRUE(sums.finish(/*last_round=*/true).ok());
  });
}

TEST(SliceSums, ARankThatIsGoneIsTheError) {
  on_slice_ranks(2, [](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    const std::vector<float> values(4, 1.0F);
    const std::vector<ArenaRange> slices = {{0, 2}, {2, 4}};
    std::vector<float> place(2);
    SumRounds<float> rounds;
    rounds.kept = true;
    rounds.place = place;
    SliceSums sums(communicator);
    sums.begin(values, {{slices, {1, 1}, &rounds}}, "gradients of layer 3");
    const runtime::Status status = sums.finish(/*last_round=*/true);
    EXPECT_EQ(status.code(), runtime::ErrorCode::kUnavailable);
    EXPECT_NE(status.message().find("gradients of layer 3"), std::string::npos) << status.message();
  });
}

}  // namespace
}  // namespace rl
