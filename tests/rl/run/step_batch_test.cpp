#include "rl/run/rl/step_batch.h"

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

Lists prompts_by_worker(const StepBatch& batch) {
  Lists prompts;
  for (const PromptShard& shard : batch.shards()) prompts.push_back(shard.prompts);
  return prompts;
}

TEST(StepBatch, HasTheSamplesOfEachPromptWithTheirLengths) {
  FakeBatches batches;
  const StepBatch batch = fake_batch(batches, 4, 2, 2);
  EXPECT_EQ(batch.prompts(), 4);
  EXPECT_EQ(batch.size(), 8u);
  EXPECT_EQ(prompts_by_worker(batch), (Lists{{0, 1}, {2, 3}}));
  EXPECT_EQ(batch.by_worker(&Sample::response_tokens), (Lists{{1, 2, 2, 3}, {3, 4, 4, 5}}));
  EXPECT_EQ(batch.tokens(), (std::vector<std::int64_t>{12, 20}));
  EXPECT_EQ(batch.prompt_of_samples(), (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(batch.shares[1].groups[0].row, 102);
}

TEST(StepBatch, AWorkerWithOtherSamplesIsAnError) {
  FakeBatches batches;
  StepBatch batch = fake_batch(batches, 2, 1, 2);
  Generated other;
  EXPECT_EQ(batch.take({other}).code(), runtime::ErrorCode::kInternal);
}

// Scores are asked for where samples were generated, and come when they have gone elsewhere.
TEST(StepBatch, ScoresFindSamplesThatHaveMoved) {
  FakeBatches batches;
  FakeScore reward(batches);
  reward.of = [](std::int64_t prompt, std::int64_t sample) {
    return static_cast<double>(10 * prompt + sample);
  };
  reward.extra = {"acc"};
  StepBatch batch = fake_batch(batches, 4, 2, 2);
  auto reports = reward.score(batch.batches(), batch.tasks());
  const BalancedShards swapped{.shards = {{.prompts = {2, 0}}, {.prompts = {3, 1}}},
                               .places = {{{1, 0}, {0, 0}}, {{1, 1}, {0, 1}}}};
  batch.place(swapped);
  EXPECT_EQ(prompts_by_worker(batch), (Lists{{2, 0}, {3, 1}}));
  ASSERT_TRUE(batch.take_scores(std::move(*reports)).ok());
  EXPECT_EQ(batch.all<double>(&Sample::score), (std::vector<double>{20, 21, 0, 1, 30, 31, 10, 11}));
  EXPECT_EQ(batch.shares[0].groups[0].samples[1].extras.at("acc"), 31.0);
  EXPECT_EQ(batch.reports.size(), 2u);
}

TEST(StepBatch, LeavesOutSamplesAndKeepsTheirGroups) {
  FakeBatches batches;
  StepBatch batch = fake_batch(batches, 2, 1, 2);
  batch.keep_if([](const Sample& sample) { return sample.response_tokens > 2; });
  EXPECT_EQ(batch.group_sizes(), (Lists{{0, 1}}));
  EXPECT_EQ(batch.prompts(), 2);
}

// What three rounds leave is cut into the mini-batches of one batch, on whichever worker its
// prompts are.
TEST(StepBatch, RoundsAreNumberedOnAndCutIntoMiniBatches) {
  StepBatch fresh{.shares = std::vector<WorkerShare>(2)};
  for (const std::int64_t prompt : {0, 1, 4}) fresh.shares[0].groups.push_back({.prompt = prompt});
  for (const std::int64_t prompt : {2, 3, 5}) fresh.shares[1].groups.push_back({.prompt = prompt});
  StepBatch kept;
  kept.append(fresh, {{1, 2}, {0}});
  EXPECT_EQ(prompts_by_worker(kept), (Lists{{0, 2}, {1}}));
  kept.append(fresh, {{}, {0, 2}});
  EXPECT_EQ(prompts_by_worker(kept), (Lists{{0, 2}, {1, 3, 4}}));
  EXPECT_EQ(kept.prompts(), 5);
  kept.cut_mini_batches(2);
  EXPECT_EQ(kept.shards()[0].mini_batch_offsets, (std::vector<std::int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(kept.shards()[1].mini_batch_offsets, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace rl
