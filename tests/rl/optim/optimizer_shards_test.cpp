// The sums, the norm and the step of ranks with a home each, against one loop. Ranks are threads.
#include "rl/optim/optimizer_shards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/rl/optim/plain_descent.h"
#include "tests/rl/optim/sharing_ranks.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;
using testing::on_sharing_ranks;

constexpr std::int64_t kShardedElements = 3 * kNormChunk + 16;  // the last chunk is a small one

// Their sums depend on the order of addends.
std::vector<float> normal_values(int rank, int round = 0) {
  std::mt19937 random(static_cast<unsigned>(100 * round + rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(kShardedElements);
  for (float& value : values) value = normal(random);
  return values;
}

void add_to(std::vector<float>& sum, std::span<const float> values) {
  if (sum.empty()) return sum.assign(values.begin(), values.end());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

std::vector<float> sum_of_ranks(int ranks) {
  std::vector<float> sum;
  for (int rank = 0; rank < ranks; ++rank) add_to(sum, normal_values(rank));
  return sum;
}

// What an optimizer of that home works on.
std::vector<float> values_at_home(const StepShards& shards, std::span<const float> arena) {
  std::vector<float> values;
  for (const ArenaRange& range : shards.home().set().ranges()) {
    const std::span<const float> part = part_of(arena, range);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

TEST(OptimizerShards, HomesAreWholeChunksInOrderSomeOfThemEmpty) {
  EXPECT_EQ(moment_homes(kShardedElements, 2),
            (std::vector<ArenaRange>{{0, 2 * kNormChunk}, {2 * kNormChunk, kShardedElements}}));
  const std::vector<ArenaRange> six = moment_homes(kShardedElements, 6);
  ASSERT_EQ(six.size(), 6u);
  std::int64_t end = 0;
  for (const ArenaRange& home : six) {
    EXPECT_EQ(home.begin, end);
    EXPECT_LE(home.size(), kNormChunk);
    end = home.end;
  }
  EXPECT_EQ(end, kShardedElements);
  EXPECT_EQ(six.back().size(), 0);
}

TEST(OptimizerShards, AStepOfAllRanksIsThatOfOneLoop) {
  for (const ZeroLevel level : {ZeroLevel::kNone, ZeroLevel::kMoments}) {
    for (const int ranks : {1, 2, 3, 6}) {
      SCOPED_TRACE("ZeRO " + std::to_string(static_cast<int>(level)) + ", " +
                   std::to_string(ranks) + " ranks");
      const std::vector<float> sum = sum_of_ranks(ranks);
      double squares = 0.0;
      for (const float value : sum) squares += static_cast<double>(value) * value;
      std::vector<float> expected = normal_values(77);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.25F * (0.5F * sum[i]);
      const bool shards_it = level == ZeroLevel::kMoments && ranks > 1;
      on_sharing_ranks(ranks, [&](Communicator& communicator) {
        kernel::ThreadPool pool(1);
        OptimizerShards shards(communicator, kShardedElements, level);
        EXPECT_EQ(shards.is_sharded(), shards_it);
        EXPECT_EQ(std::ssize(shards.homes()), shards_it ? ranks : 0);
        std::vector<float> gradients = normal_values(communicator.rank());
        ASSERT_TRUE(shards.sum(gradients).ok());
        EXPECT_TRUE(values_at_home(shards, gradients) == values_at_home(shards, sum));

        const auto norm = shards.norm(pool, gradients);
        ASSERT_TRUE(norm.ok()) << norm.status().to_string();
        EXPECT_NEAR(*norm, std::sqrt(squares), 1e-9 * *norm);
        EXPECT_EQ(*norm, l2_norm(pool, sum)) << "the bits of one rank";

        testing::PlainDescent optimizer;
        std::vector<float> weights = normal_values(77);
        const Status stepped = shards.step(optimizer, pool, weights, gradients, 0.25F, 0.5F);
        ASSERT_TRUE(stepped.ok()) << stepped.to_string();
        EXPECT_TRUE(weights == expected);
        EXPECT_EQ(optimizer.elements, shards.home().elements());
      });
    }
  }
}

// Round 0 is of rank 1 alone, round 1 of all but it, in the order of ranks.
TEST(OptimizerShards, RoundsAreAddedUpBehindOneAnotherAndOnlyTheLastEndsTheSum) {
  std::vector<float> expected = normal_values(1, 0);
  add_to(expected, normal_values(0, 1));
  add_to(expected, normal_values(2, 1));
  const std::vector<std::uint8_t> first = {0, 1, 0}, second = {1, 0, 1};
  for (const ZeroLevel level : {ZeroLevel::kNone, ZeroLevel::kMoments}) {
    on_sharing_ranks(3, [&](Communicator& communicator) {
      OptimizerShards shards(communicator, kShardedElements, level);
      for (int step = 0; step < 2; ++step) {  // nothing is left of the step before
        std::vector<float> gradients = normal_values(communicator.rank(), 0);
        ASSERT_TRUE(shards.add_round(gradients, first, /*last=*/false).ok());
        EXPECT_FALSE(shards.is_summed());
        EXPECT_TRUE(gradients == normal_values(communicator.rank(), 0)) << "as they were";
        gradients = normal_values(communicator.rank(), 1);
        ASSERT_TRUE(shards.add_round(gradients, second, /*last=*/true).ok());
        EXPECT_TRUE(shards.is_summed());
        EXPECT_TRUE(values_at_home(shards, gradients) == values_at_home(shards, expected));
        shards.end_step();
        EXPECT_FALSE(shards.is_summed());
      }
    });
  }
}

TEST(OptimizerShards, WhatHomesHaveComesTogetherOnTheFirstRank) {
  const std::vector<float> whole = normal_values(5);
  on_sharing_ranks(6, [&](Communicator& communicator) {
    OptimizerShards shards(communicator, kShardedElements, ZeroLevel::kMoments);
    std::vector<float> collected(communicator.rank() == 0 ? whole.size() : 0);
    ASSERT_TRUE(shards.collect(values_at_home(shards, whole), collected).ok());
    if (communicator.rank() == 0) {
      EXPECT_TRUE(collected == whole);
    }
  });
}

// Its optimizer fails in a step in which the others wait for its weights.
TEST(OptimizerShards, ARankWhoseOptimizerFailsIsAnErrorOfTheOthers) {
  std::vector<Status> ended(3);
  on_sharing_ranks(3, [&](Communicator& communicator) {
    kernel::ThreadPool pool(1);
    OptimizerShards shards(communicator, kShardedElements, ZeroLevel::kMoments);
    testing::PlainDescent optimizer;
    if (communicator.rank() == 1) optimizer.status = runtime::internal_error("no step today");
    std::vector<float> weights = normal_values(77);
    const std::vector<float> gradients = normal_values(communicator.rank());
    ended[static_cast<std::size_t>(communicator.rank())] =
        shards.step(optimizer, pool, weights, gradients, 0.25F, 1.0F);
  });
  EXPECT_EQ(ended[1].message(), "no step today");
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(ended[rank].code(), ErrorCode::kUnavailable) << ended[rank].to_string();
    EXPECT_NE(ended[rank].message().find("weights"), std::string::npos) << ended[rank].message();
    EXPECT_NE(ended[rank].message().find("has left the group"), std::string::npos)
        << ended[rank].message();
  }
}

TEST(OptimizerShards, ARoundThatFailsIsNoSum) {
  on_sharing_ranks(2, [](Communicator& communicator) {
    if (communicator.rank() == 1) return;  // it is gone
    OptimizerShards shards(communicator, kShardedElements, ZeroLevel::kMoments);
    std::vector<float> gradients = normal_values(0);
    const std::vector<std::uint8_t> adds = {1, 1};
    EXPECT_EQ(shards.add_round(gradients, adds, /*last=*/true).code(), ErrorCode::kUnavailable);
    EXPECT_FALSE(shards.is_summed());
  });
}

TEST(OptimizerShards, CompressedSumsHaveNoRoundsAndForgetWhatIsLeft) {
  const GradientCompressionOptions compression{.scheme = GradientCompression::kTopK,
                                               .topk_ratio = 0.01};
  on_sharing_ranks(2, [&](Communicator& communicator) {
    OptimizerShards shards(communicator, kShardedElements, ZeroLevel::kNone, compression);
    const std::vector<std::uint8_t> adds = {1, 1};
    std::vector<float> none(kShardedElements);
    EXPECT_EQ(shards.add_round(none, adds, /*last=*/true).code(), ErrorCode::kInternal);
    EXPECT_FALSE(shards.is_summed());
    const auto summed = [&] {
      std::vector<float> gradients = normal_values(communicator.rank());
      EXPECT_TRUE(shards.sum(gradients).ok());
      return gradients;
    };
    const std::vector<float> first = summed(), second = summed();
    EXPECT_FALSE(first == second) << "what the first left out is in the second";
    shards.forget_residual();
    EXPECT_TRUE(summed() == first);
  });
}

}  // namespace
}  // namespace rl
