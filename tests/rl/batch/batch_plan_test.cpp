#include "rl/batch/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>

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

using MicroBatches = std::vector<MicroBatch>;

TEST(PlanMicroBatches, StaysWithinBothLimits) {
  const Indices lengths{3, 3, 3, 9, 1, 1, 1};
  EXPECT_EQ(plan_micro_batches(lengths, {}), (MicroBatches{{0, 7}}));
  EXPECT_EQ(plan_micro_batches(lengths, {.samples_max = 3}),
            (MicroBatches{{0, 3}, {3, 6}, {6, 7}}));
  EXPECT_EQ(plan_micro_batches(lengths, {.tokens_max = 6}),
            (MicroBatches{{0, 2}, {2, 3}, {3, 4}, {4, 7}}));
  EXPECT_EQ(plan_micro_batches(lengths, {.samples_max = 2, .tokens_max = 6}),
            (MicroBatches{{0, 2}, {2, 3}, {3, 4}, {4, 6}, {6, 7}}));
  EXPECT_EQ(plan_micro_batches({}, {.tokens_max = 6}), MicroBatches{});
}

TEST(PlanRounds, EveryWorkerHasAsMany) {
  const std::vector<Indices> lengths{{5, 5, 5}, {5}, {}};
  const std::vector<MicroBatchLimits> limits{{.samples_max = 2}, {.samples_max = 1}, {}};
  EXPECT_EQ(plan_rounds(lengths, limits),
            (std::vector<MicroBatches>{{{0, 2}, {2, 3}}, {{0, 1}, {1, 1}}, {{0, 0}, {0, 0}}}));
}

// What a worker cut its own part of a mini-batch into, when it did so itself: where each pass
// begins, and the end.
Indices cut_by_the_worker(std::span<const std::int64_t> lengths, const MicroBatchLimits& limits) {
  Indices begins{0};
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto samples = static_cast<std::int64_t>(i) - begins.back();
    if ((limits.samples_max > 0 && samples >= limits.samples_max) ||
        (limits.tokens_max > 0 && samples > 0 && tokens + lengths[i] > limits.tokens_max)) {
      begins.push_back(static_cast<std::int64_t>(i));
      tokens = 0;
    }
    tokens += lengths[i];
  }
  if (!lengths.empty()) begins.push_back(static_cast<std::int64_t>(lengths.size()));
  return begins;
}

// Those, and idle ones behind them.
void expect_cut_by_the_worker(const MicroBatches& passes, const MicroBatch& rows,
                              std::span<const std::int64_t> tokens,
                              const MicroBatchLimits& limits) {
  const Indices begins =
      cut_by_the_worker(tokens.subspan(static_cast<std::size_t>(rows.first),
                                       static_cast<std::size_t>(rows.last - rows.first)),
                        limits);
  ASSERT_GE(passes.size() + 1, begins.size());
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool idle = i + 1 >= begins.size();
    EXPECT_EQ(passes[i], idle ? (MicroBatch{rows.last, rows.last})
                              : (MicroBatch{rows.first + begins[i], rows.first + begins[i + 1]}));
  }
}

TEST(AddMicroBatches, AreThoseThatEachWorkerCutForItself) {
  std::mt19937 random(7);
  const auto draw = [&](int last) { return std::uniform_int_distribution<int>(0, last)(random); };
  for (int round = 0; round < 200; ++round) {
    const std::int64_t workers = 1 + draw(3);
    const auto shards = shard_prompts(1 + draw(11), 1 + draw(5), workers);
    std::vector<Indices> tokens;
    std::vector<PassLimits> limits;
    for (const PromptShard& shard : shards) {
      tokens.emplace_back(shard.prompts.size() * 2);
      for (std::int64_t& count : tokens.back()) count = 1 + draw(30);
      for (MicroBatchLimits* of_passes : {&limits.emplace_back().learning, &limits.back().scoring})
        *of_passes = {.samples_max = draw(3), .tokens_max = draw(1) * draw(60)};
    }
    auto plan = plan_mini_batches(shards, 2, tokens);
    add_micro_batches(plan, tokens, limits);
    for (std::size_t k = 0; k < plan.front().size(); ++k) {
      for (std::size_t w = 0; w < plan.size(); ++w) {
        const MiniBatch& mine = plan[w][k];
        EXPECT_EQ(mine.micro_batches.size(), plan[0][k].micro_batches.size());
        EXPECT_EQ(mine.scoring_batches.size(), plan[0][k].scoring_batches.size());
        const MicroBatch rows{mine.first_sample, mine.last_sample};
        expect_cut_by_the_worker(mine.micro_batches, rows, tokens[w], limits[w].learning);
        expect_cut_by_the_worker(mine.scoring_batches, rows, tokens[w], limits[w].scoring);
      }
    }
    const auto whole = plan_scoring(tokens, limits);
    for (std::size_t w = 0; w < whole.size(); ++w) {
      EXPECT_EQ(whole[w].size(), whole[0].size());
      const auto samples = static_cast<std::int64_t>(tokens[w].size());
      expect_cut_by_the_worker(whole[w], {0, samples}, tokens[w], limits[w].scoring);
    }
  }
}

TEST(AddMicroBatches, AreCutLeafByLeaf) {
  // Two workers, three leaves: the first worker has leaves 0 and 2.
  auto plan = std::vector<std::vector<MiniBatch>>(2);
  plan[0] = {{.first_sample = 0, .last_sample = 5}};
  plan[1] = {{.first_sample = 0, .last_sample = 2}};
  const std::vector<Indices> tokens{{10, 10, 10, 10, 10}, {10, 10}};
  const PassLimits two{.learning = {.samples_max = 2}, .scoring = {}};
  add_micro_batches(plan, tokens, std::vector{two, two},
                    {.count = 3, .of_rows = {{0, 0, 0, 2, 2}, {1, 1}}});
  EXPECT_EQ(plan[0][0].micro_batches, (MicroBatches{{0, 2}, {2, 3}, {3, 5}}));
  EXPECT_EQ(plan[1][0].micro_batches, (MicroBatches{{0, 2}, {2, 2}, {2, 2}}));
  EXPECT_EQ(plan[0][0].rounds, (std::vector<GradientRound>{{0, 2, {1, 1}}, {2, 1, {1, 0}}}));
  EXPECT_EQ(plan[1][0].rounds, (std::vector<GradientRound>{{1, 2, {1, 1}}, {3, 1, {1, 0}}}));
  EXPECT_EQ(plan[0][0].scoring_batches, (MicroBatches{{0, 5}}));
}

TEST(PassesOver, AreAllRowsInOrder) {
  EXPECT_EQ(*passes_over({2, 5}, {}), (MicroBatches{{2, 5}}));
  const MicroBatches good{{2, 4}, {4, 5}, {5, 5}};
  EXPECT_EQ(*passes_over({2, 5}, good), good);
  for (const MicroBatches& wrong : {MicroBatches{{2, 4}}, MicroBatches{{2, 4}, {3, 5}},
                                    MicroBatches{{0, 5}}, MicroBatches{{2, 6}, {6, 5}}}) {
    EXPECT_EQ(passes_over({2, 5}, wrong).status().code(), runtime::ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace rl
