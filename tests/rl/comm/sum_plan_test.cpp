// The places of a sum's values. The sums themselves are in ordered_sum_test.cpp.
#include "rl/comm/sum_plan.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

// How often each value is in a slice of any rank.
std::vector<int> times_summed(const SumPlan& plan, int ranks, std::size_t values) {
  std::vector<int> times(values, 0);
  for (std::size_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    for (int rank = 0; rank < ranks; ++rank) {
      const SumPlan::Slice slice = plan.slice(bucket, rank);
      EXPECT_LE(slice.begin, slice.end);
      for (std::size_t at = slice.begin; at < slice.end; ++at) ++times.at(at);
    }
  }
  return times;
}

TEST(SumPlan, EachValueOfBucketsIsSummedOnce) {
  for (const std::size_t values : {0U, 1U, 5U, 12U, 13U, 100U}) {
    for (const int ranks : {1, 3, 4}) {
      const SumPlan plan = SumPlan::of_buckets(values, ranks, 6);
      EXPECT_EQ(times_summed(plan, ranks, values), std::vector<int>(values, 1))
          << values << " over " << ranks;
      std::size_t all = 0;
      for (int rank = 0; rank < ranks; ++rank) all += plan.elements_of(rank);
      EXPECT_EQ(all, values);
    }
  }
}

TEST(SumPlan, ABucketIsAStretchOfNeighboursDealtEvenly) {
  const SumPlan plan = SumPlan::of_buckets(13, 3, 6);
  EXPECT_EQ(plan.buckets(), 3u);
  EXPECT_EQ(plan.slice(1, 0), (SumPlan::Slice{6, 8}));
  EXPECT_EQ(plan.slice(1, 2), (SumPlan::Slice{10, 12}));
  EXPECT_EQ(plan.slice(2, 0), (SumPlan::Slice{12, 13}));
  EXPECT_EQ(plan.slice(2, 1).size(), 0u);
}

// Homes need be neither in order nor alike, and what no rank has is summed by none.
TEST(SumPlan, EachRankSumsItsHomeAndNoOther) {
  const std::vector<ArenaRange> homes{{20, 31}, {0, 0}, {2, 18}};
  const SumPlan plan = SumPlan::of_homes(homes, 12);
  std::vector<int> expected(31, 0);
  for (const ArenaRange& home : homes) {
    for (std::int64_t at = home.begin; at < home.end; ++at)
      expected[static_cast<std::size_t>(at)] = 1;
  }
  EXPECT_EQ(times_summed(plan, 3, 31), expected);
  EXPECT_EQ(plan.elements_of(0), 11u);
  EXPECT_EQ(plan.elements_of(1), 0u);
  EXPECT_EQ(plan.elements_of(2), 16u);
  EXPECT_EQ(plan.slice(1, 0), (SumPlan::Slice{24, 28})) << "a part of every home in each bucket";
  EXPECT_EQ(plan.slice(1, 2), (SumPlan::Slice{6, 10}));
}

TEST(SumPlan, ABucketSmallerThanTheGroupStillMovesOn) {
  const std::vector<ArenaRange> homes{{0, 2}, {2, 4}, {4, 6}};
  const SumPlan plan = SumPlan::of_homes(homes, 1);
  EXPECT_EQ(plan.buckets(), 2u);
  EXPECT_EQ(times_summed(plan, 3, 6), std::vector<int>(6, 1));
}

}  // namespace
}  // namespace rl
