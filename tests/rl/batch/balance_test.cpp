#include "rl/batch/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace rl {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

TEST(Balance, TheLongestGoFirstToWhoHasLeast) {
  EXPECT_EQ(assign_evenly(std::vector<std::int64_t>{2, 9, 5, 4}, 2),
            (std::vector<std::int64_t>{
                0, 0, 1, 1}));  // 9, then 5 and 4 next to it, then 2 where there is as much
  EXPECT_EQ(spread_evenly(std::vector<std::int64_t>{1, 1, 1}, 2), (Lists{{0, 2}, {1}}));
  EXPECT_EQ(spread_evenly(std::vector<std::int64_t>{7}, 3), (Lists{{0}, {}, {}}));
}

TEST(Balance, PromptsStayInTheirMiniBatches) {
  // Mini-batches of prompts 0 to 3 and 4 to 5: each has its long prompts on one worker.
  const std::vector<PromptShard> shards{{.prompts = {0, 1, 4}, .mini_batch_offsets = {0, 2, 3}},
                                        {.prompts = {2, 3, 5}, .mini_batch_offsets = {0, 2, 3}}};
  const auto balanced = balance_shards(shards, {{10, 10, 8}, {1, 1, 8}});
  ASSERT_TRUE(balanced.has_value());
  EXPECT_EQ(balanced->shards[0],
            (PromptShard{.prompts = {0, 2, 4}, .mini_batch_offsets = {0, 2, 3}}));
  EXPECT_EQ(balanced->shards[1],
            (PromptShard{.prompts = {1, 3, 5}, .mini_batch_offsets = {0, 2, 3}}));
  EXPECT_EQ(balanced->places, (PromptPlaces{{{0, 0}, {1, 0}, {0, 2}}, {{0, 1}, {1, 1}, {1, 2}}}));
}

// One worker would have the larger share of each.
TEST(Balance, TheLargerSharesTakeTurns) {
  const std::vector<PromptShard> shards{{.prompts = {0, 1, 3, 4}, .mini_batch_offsets = {0, 2, 4}},
                                        {.prompts = {2, 5}, .mini_batch_offsets = {0, 1, 2}}};
  const auto balanced = balance_shards(shards, {{10, 9, 10, 9}, {2, 2}});
  ASSERT_TRUE(balanced.has_value());
  EXPECT_EQ(balanced->shards[0].prompts, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(balanced->shards[1].prompts, (std::vector<std::int64_t>{0, 4, 5}));
}

TEST(Balance, WhatIsEvenEnoughStays) {
  const std::vector<PromptShard> shards{{.prompts = {0, 1}, .mini_batch_offsets = {0, 2}},
                                        {.prompts = {2, 3}, .mini_batch_offsets = {0, 2}}};
  EXPECT_FALSE(balance_shards(shards, {{100, 100}, {100, 99}}).has_value());
  EXPECT_FALSE(balance_shards(shards, {{500, 1}, {1, 1}}).has_value())
      << "one prompt is most of it, wherever it is";
}

TEST(Balance, RandomBatchesComeNearTheMeanAndLoseNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const std::int64_t workers = std::uniform_int_distribution<std::int64_t>(2, 5)(random);
    const std::vector<PromptShard> shards = shard_prompts(40, 20, workers);
    Lists tokens;
    std::int64_t largest = 0;
    for (const PromptShard& shard : shards) {
      std::vector<std::int64_t>& of_worker = tokens.emplace_back();
      for (std::size_t i = 0; i < shard.prompts.size(); ++i)
        of_worker.push_back(std::uniform_int_distribution<std::int64_t>(1, 500)(random));
      for (const std::int64_t count : of_worker) largest = std::max(largest, count);
    }
    const auto balanced = balance_shards(shards, tokens);
    if (!balanced) continue;
    Lists moved;
    for (const std::vector<PromptPlace>& places : balanced->places) {
      std::vector<std::int64_t>& of_worker = moved.emplace_back();
      for (const PromptPlace& place : places)
        of_worker.push_back(
            tokens[static_cast<std::size_t>(place.worker)][static_cast<std::size_t>(place.row)]);
    }
    for (std::size_t k = 0; k < 2; ++k) {
      std::vector<std::int64_t> prompts, sums;
      for (std::size_t worker = 0; worker < shards.size(); ++worker) {
        const PromptShard& shard = balanced->shards[worker];
        std::int64_t& sum = sums.emplace_back();
        for (auto i = static_cast<std::size_t>(shard.mini_batch_offsets[k]);
             i < static_cast<std::size_t>(shard.mini_batch_offsets[k + 1]); ++i) {
          prompts.push_back(shard.prompts[i]);
          sum += moved[worker][i];
        }
      }
      std::sort(prompts.begin(), prompts.end());
      ASSERT_EQ(prompts.size(), 20u);
      for (std::int64_t i = 0; i < 20; ++i)
        ASSERT_EQ(prompts[static_cast<std::size_t>(i)], static_cast<std::int64_t>(k) * 20 + i);
      EXPECT_LE(
          *std::max_element(sums.begin(), sums.end()) - *std::min_element(sums.begin(), sums.end()),
          largest);
    }
  }
}

TEST(DealLeaves, DependOnThePromptsAloneAndWorkersTakeThemInTurns) {
  std::mt19937 random(3);
  std::vector<std::int64_t> tokens_of(23);
  for (std::int64_t& count : tokens_of)
    count = std::uniform_int_distribution<std::int64_t>(1, 500)(random);
  for (const bool evenly : {false, true}) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> first;
    for (const std::int64_t workers : {1, 2, 3, 4}) {
      const std::vector<PromptShard> shards = shard_prompts(23, 10, workers);
      Lists tokens;
      for (const PromptShard& shard : shards) {
        std::vector<std::int64_t>& of_worker = tokens.emplace_back();
        for (const std::int64_t prompt : shard.prompts)
          of_worker.push_back(tokens_of[static_cast<std::size_t>(prompt)]);
      }
      const BalancedShards dealt = deal_leaves(shards, tokens, 4, evenly);
      std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> prompts;
      for (std::size_t worker = 0; worker < shards.size(); ++worker) {
        const PromptShard& shard = dealt.shards[worker];
        ASSERT_EQ(shard.mini_batch_offsets.size(), 4u);
        for (std::size_t k = 0; k < 3; ++k) {
          std::int64_t before = 0;
          for (auto i = static_cast<std::size_t>(shard.mini_batch_offsets[k]);
               i < static_cast<std::size_t>(shard.mini_batch_offsets[k + 1]); ++i) {
            const std::int64_t leaf = dealt.leaves[worker][i];
            EXPECT_EQ(leaf % workers, static_cast<std::int64_t>(worker));
            EXPECT_GE(leaf, before);
            before = leaf;
            prompts[{static_cast<std::int64_t>(k), leaf}].push_back(shard.prompts[i]);
            const PromptPlace place = dealt.places[worker][i];
            EXPECT_EQ(shards[static_cast<std::size_t>(place.worker)]
                          .prompts[static_cast<std::size_t>(place.row)],
                      shard.prompts[i]);
          }
        }
      }
      if (workers == 1) first = prompts;
      EXPECT_EQ(prompts, first) << workers << " workers";
    }
    std::size_t all = 0;
    for (const auto& [leaf, prompts] : first) all += prompts.size();
    EXPECT_EQ(all, 23u);
    if (evenly) continue;
    EXPECT_EQ((first[{0, 1}]), (std::vector<std::int64_t>{2, 3, 4})) << "in their order";
  }
}

}  // namespace
}  // namespace rl
