#include "rl/batch/rollout_batch.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

RolloutBatch two_samples() {
  RolloutBatch batch;
  batch.prompts.append(std::vector<std::int32_t>{1, 2, 3});
  batch.prompt_of = {0, 0};
  batch.responses.append(std::vector<std::int32_t>{4});
  batch.responses.append(std::vector<std::int32_t>{5, 6});
  batch.logprobs = {-1, -2, -3};
  batch.stopped = {1, 0};
  return batch;
}

TEST(Ragged, RowsHaveTheirOwnLengths) {
  Ragged<std::int32_t> rows;
  rows.append(std::vector<std::int32_t>{1, 2});
  rows.append(std::vector<std::int32_t>{});
  rows.append(std::vector<std::int32_t>{3});
  EXPECT_EQ(rows.rows(), 3);
  EXPECT_EQ(rows.row_size(1), 0);
  EXPECT_EQ(rows.row(2)[0], 3);
  EXPECT_TRUE(rows.consistent());
}

TEST(Ragged, FindsOffsetsThatLie) {
  using Rows = Ragged<std::int32_t>;
  EXPECT_FALSE((Rows{{1, 2}, {}}).consistent());
  EXPECT_FALSE((Rows{{1, 2}, {1, 2}}).consistent());
  EXPECT_FALSE((Rows{{1, 2}, {0, 3}}).consistent());
  EXPECT_FALSE((Rows{{1, 2}, {0, 2, 1, 2}}).consistent());
}

TEST(RolloutBatch, PromptsAreCollectedFromSeveralBatches) {
  const RolloutBatch first = two_samples();
  RolloutBatch second;
  second.prompts.append(std::vector<std::int32_t>{7});
  second.prompts.append(std::vector<std::int32_t>{8, 9});
  second.prompt_of = {1, 0};  // in another order than the prompts
  second.responses.append(std::vector<std::int32_t>{10, 11});
  second.responses.append(std::vector<std::int32_t>{12});
  second.logprobs = {-4, -5, -6};
  second.stopped = {1, 1};
  const std::vector<RolloutBatch> batches{first, second};
  const std::vector<PromptPlace> places{{1, 1}, {0, 0}};
  const auto collected = collect_prompts(batches, places);
  ASSERT_TRUE(collected.ok()) << collected.status().to_string();
  EXPECT_TRUE(collected->validate().ok());
  EXPECT_EQ(collected->prompts.values, (std::vector<std::int32_t>{8, 9, 1, 2, 3}));
  EXPECT_EQ(collected->responses.values, (std::vector<std::int32_t>{10, 11, 4, 5, 6}));
  EXPECT_EQ(collected->prompt_of, (std::vector<std::int32_t>{0, 1, 1}));
  EXPECT_EQ(collected->logprobs, (std::vector<float>{-4, -5, -1, -2, -3}));
  EXPECT_FALSE(collect_prompts(batches, std::vector<PromptPlace>{{2, 0}}).ok());
  EXPECT_FALSE(collect_prompts(batches, std::vector<PromptPlace>{{0, 1}}).ok());
}

TEST(RolloutBatch, SamplesCanBeLeftOut) {
  RolloutBatch batch = two_samples();
  batch.lengths_max = {7, 8};
  const auto second = without_samples(batch, {1, 0});
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_TRUE(second->validate().ok());
  EXPECT_EQ(second->responses.values, (std::vector<std::int32_t>{5, 6}));
  EXPECT_EQ(second->logprobs, (std::vector<float>{-2, -3}));
  EXPECT_EQ(second->stopped, std::vector<std::uint8_t>{0});
  EXPECT_EQ(second->lengths_max, std::vector<std::int64_t>{8});
  EXPECT_EQ(second->prompts, batch.prompts);
  EXPECT_EQ(*without_samples(batch, {0, 0}), batch);
  EXPECT_EQ(without_samples(batch, {1, 1})->samples(), 0);
  EXPECT_FALSE(without_samples(batch, {1}).ok());
}

TEST(RolloutBatch, NumbersPerTokenGoWithTheirSamples) {
  RolloutBatch batch = two_samples();
  EXPECT_EQ(*token_values_without(batch, std::vector<float>{1, 2, 3}, {1, 0}),
            (std::vector<float>{2, 3}));
  EXPECT_EQ(*token_values_without(batch, std::vector<float>{1, 2, 3}, {0, 1}),
            std::vector<float>{1});
  EXPECT_FALSE(token_values_without(batch, std::vector<float>{1, 2}, {0, 1}).ok());
  EXPECT_FALSE(token_values_without(batch, std::vector<float>{1, 2, 3}, {0}).ok());
  batch.response_mask = {1, 0, 1};  // a token that a tool wrote has no number
  batch.logprobs = {-1, -3};
  EXPECT_EQ(*token_values_without(batch, std::vector<float>{1, 3}, {1, 0}), std::vector<float>{3});
}

TEST(RolloutBatch, NumbersPerTokenComeBackToTheirSamples) {
  RolloutBatch batch = two_samples();
  std::vector<float> values = {1, 2, 3};
  ASSERT_TRUE(put_token_values(batch, std::vector<float>{7, 8}, {1, 0}, values).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 7, 8}));
  ASSERT_TRUE(put_token_values(batch, std::vector<float>{9}, {0, 1}, values).ok());
  EXPECT_EQ(values, (std::vector<float>{9, 7, 8}));
  EXPECT_FALSE(put_token_values(batch, std::vector<float>{9, 9}, {0, 1}, values).ok());
  EXPECT_FALSE(put_token_values(batch, std::vector<float>{9}, {0}, values).ok());
  batch.response_mask = {1, 0, 1};
  batch.logprobs = {-1, -3};
  values = {1, 3};
  ASSERT_TRUE(put_token_values(batch, std::vector<float>{5}, {1, 0}, values).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 5}));
}

TEST(RolloutBatch, SummaryHasScalarsPerSample) {
  const RolloutSummary summary = summarize(two_samples());
  EXPECT_EQ(summary.prompt_tokens, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(summary.response_tokens, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(summary.stopped, (std::vector<std::uint8_t>{1, 0}));
}

TEST(RolloutBatch, RefusesWhatDoesNotFitTogether) {
  EXPECT_TRUE(two_samples().validate().ok());
  RolloutBatch batch = two_samples();
  batch.prompt_of[1] = 1;
  EXPECT_FALSE(batch.validate().ok());
  batch = two_samples();
  batch.logprobs.pop_back();
  EXPECT_FALSE(batch.validate().ok());
  batch = two_samples();
  batch.responses.offsets = {0, 0, 3};
  EXPECT_FALSE(batch.validate().ok());
  batch = two_samples();
  batch.stopped.clear();
  EXPECT_FALSE(batch.validate().ok());
}

}  // namespace
}  // namespace rl
