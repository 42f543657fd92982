#include "rl/train/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rl {
namespace {

using Indices = std::vector<std::int64_t>;

TEST(ShardPrompts, CutsEveryMiniBatchOverTheWorkers) {
  const auto shards = shard_prompts(8, 4, 2);
  EXPECT_EQ(shards[0], (PromptShard{{0, 1, 4, 5}, {0, 2, 4}}));
  EXPECT_EQ(shards[1], (PromptShard{{2, 3, 6, 7}, {0, 2, 4}}));
}

TEST(ShardPrompts, CoversEachPromptOnceWhateverTheNumbers) {
  for (const std::int64_t prompts : {1, 3, 7, 10}) {
    for (const std::int64_t mini : {1, 3, 100}) {
      for (const std::int64_t workers : {1, 2, 4}) {
        Indices all;
        const auto shards = shard_prompts(prompts, mini, workers);
        for (const auto& shard : shards) {
          EXPECT_EQ(shard.mini_batch_offsets.size(), shards[0].mini_batch_offsets.size());
          EXPECT_EQ(shard.mini_batch_offsets.back(),
                    static_cast<std::int64_t>(shard.prompts.size()));
          all.insert(all.end(), shard.prompts.begin(), shard.prompts.end());
        }
        std::sort(all.begin(), all.end());
        Indices expected(static_cast<std::size_t>(prompts));
        for (std::int64_t i = 0; i < prompts; ++i) expected[static_cast<std::size_t>(i)] = i;
        EXPECT_EQ(all, expected);
      }
    }
  }
}

TEST(PlanMiniBatches, TotalsAreThoseOfAllWorkers) {
  const auto shards =
      shard_prompts(3, 2, 2);  // mini-batches {0, 1} and {2}; worker 1 gets all of the second
  ASSERT_EQ(shards[0].prompts, Indices{0});
  ASSERT_EQ(shards[1].prompts, (Indices{1, 2}));
  const std::vector<Indices> tokens{{1, 2}, {3, 4, 5, 6}};
  const auto plan = plan_mini_batches(shards, 2, tokens);
  EXPECT_EQ(plan[0][0], (MiniBatch{0, 2, 10, 4}));
  EXPECT_EQ(plan[1][0], (MiniBatch{0, 2, 10, 4}));
  EXPECT_EQ(plan[0][1], (MiniBatch{2, 2, 11, 2}));
  EXPECT_EQ(plan[1][1], (MiniBatch{2, 4, 11, 2}));
}

TEST(PlanMiniBatches, PromptsMayHaveLostSamples) {
  const auto shards = shard_prompts(3, 2, 2);
  const std::vector<Indices> tokens{{1}, {3, 4, 5}};
  const auto plan = plan_mini_batches(shards, std::vector<Indices>{{1}, {2, 1}}, tokens);
  EXPECT_EQ(plan[0][0], (MiniBatch{0, 1, 8, 3}));
  EXPECT_EQ(plan[1][0], (MiniBatch{0, 2, 8, 3}));
  EXPECT_EQ(plan[0][1], (MiniBatch{1, 1, 5, 1}));
  EXPECT_EQ(plan[1][1], (MiniBatch{2, 3, 5, 1}));
  // Of the first mini-batch nothing is left: no optimizer step is made of nothing.
  const auto shorter =
      plan_mini_batches(shards, std::vector<Indices>{{0}, {0, 1}}, std::vector<Indices>{{}, {5}});
  ASSERT_EQ(shorter[0].size(), 1U);
  EXPECT_EQ(shorter[1][0], (MiniBatch{0, 1, 5, 1}));
}

TEST(PlanMicroBatches, StaysWithinBothLimits) {
  const Indices lengths{3, 3, 3, 9, 1, 1, 1};
  EXPECT_EQ(plan_micro_batches(lengths, {}), (Indices{0, 7}));
  EXPECT_EQ(plan_micro_batches(lengths, {.samples_max = 3}), (Indices{0, 3, 6, 7}));
  EXPECT_EQ(plan_micro_batches(lengths, {.tokens_max = 6}), (Indices{0, 2, 3, 4, 7}));
  EXPECT_EQ(plan_micro_batches(lengths, {.samples_max = 2, .tokens_max = 6}),
            (Indices{0, 2, 3, 4, 6, 7}));
  EXPECT_EQ(plan_micro_batches({}, {.tokens_max = 6}), Indices{0});
}

}  // namespace
}  // namespace rl
