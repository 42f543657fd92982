#include "rl/batch/preference_batch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using PackedIds = std::vector<std::int32_t>;
using PackedPlaces = std::vector<std::int64_t>;

PreferenceBatch three_pairs() {
  PreferenceBatch batch;
  batch.append_pair({.prompt = {1, 2}, .chosen = {3}, .rejected = {4, 5}, .margin = 0.5});
  batch.append_pair({.prompt = {6}, .chosen = {7, 8, 9}, .rejected = {7}, .margin = 1.0});
  batch.append_pair({.prompt = {1}, .chosen = {2}, .rejected = {3}});
  return batch;
}

TEST(PreferenceBatch, BothResponsesFollowTheirPromptAndAreTheTargets) {
  const PreferenceBatch batch = three_pairs();
  EXPECT_TRUE(batch.validate().ok());
  EXPECT_TRUE(batch.is_pairs());
  EXPECT_EQ(batch.tokens(), 2 * 4 + 5 + 4);
  const PackedBatch both = pack_both(batch, {0, 2});
  EXPECT_EQ(both.ids, (PackedIds{1, 2, 3, 1, 2, 4, 5, 6, 7, 8, 9, 6, 7}));
  EXPECT_EQ(both.cu_seqlens, (PackedPlaces{0, 3, 7, 11, 13}));
  EXPECT_EQ(both.targets, (PackedPlaces{2, 5, 6, 8, 9, 10, 12}));
  const PackedBatch others = pack_responses(batch.prompts, batch.others, {1, 3});
  EXPECT_EQ(others.ids, (PackedIds{6, 7, 1, 3}));
  EXPECT_EQ(others.targets, (PackedPlaces{1, 3}));
}

TEST(PreferenceBatch, SizesThatDoNotFitAreRefused) {
  PreferenceBatch margins = three_pairs(), mixed = margins, empty = margins, fewer = margins;
  margins.margins.pop_back();
  mixed.margins.pop_back();
  mixed.wanted = {1};
  fewer.others = {};
  for (const PreferenceBatch& batch : {margins, mixed, fewer})
    support::expect_failure(batch.validate(), ErrorCode::kInvalidArgument, {"do not fit together"});
  empty.append_pair({.prompt = {1}, .chosen = {2}, .rejected = {}});
  support::expect_failure(empty.validate(), ErrorCode::kInvalidArgument,
                          {"an empty prompt or response"});
}

TEST(PreferenceBatch, SinglesCountTheWantedOnes) {
  PreferenceBatch batch;
  batch.append_single(PackedIds{1, 2}, PackedIds{3}, true, PackedIds{9});
  batch.append_single(PackedIds{1, 2}, PackedIds{4}, false, PackedIds{9, 9});
  EXPECT_TRUE(batch.validate().ok());
  EXPECT_FALSE(batch.is_pairs());
  EXPECT_EQ(batch.wanted_count(), 1);
}

// Sequences of the first response have 3, 4, 2 tokens, of the second one 4, 2, 2.
TEST(PlanPreferences, APassThatLearnsHasBothResponsesOfAPair) {
  const std::vector<PreferenceBatch> batches = {three_pairs(), {}};
  const std::vector<MicroBatchLimits> limits(2, {.tokens_max = 8});
  const auto pairs = plan_preferences(batches, /*pairs=*/true, limits);
  ASSERT_EQ(pairs.size(), 2u);
  using Cuts = std::vector<MicroBatch>;
  EXPECT_EQ(pairs[0].rows, (Cuts{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(pairs[0].responses, (Cuts{{0, 2}, {2, 3}}));
  EXPECT_EQ(pairs[0].others, (Cuts{{0, 3}}));
  EXPECT_EQ(pairs[1].rows, (Cuts{{0, 0}, {0, 0}, {0, 0}})) << "idle ones";
  EXPECT_EQ(pairs[1].responses.size(), 2u);
  const auto singles = plan_preferences(batches, /*pairs=*/false, limits);
  EXPECT_EQ(singles[0].rows, (Cuts{{0, 2}, {2, 3}})) << "the other one is not learned";
}

}  // namespace
}  // namespace rl
