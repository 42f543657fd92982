#include "rl/batch/supervised_batch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;

SupervisedBatch two_conversations() {
  SupervisedBatch batch;
  batch.append({.ids = {5, 6, 7, 8}, .learned = {0, 0, 1, 1}});
  batch.append({.ids = {9, 3}, .learned = {0, 0}});
  batch.append({.ids = {4, 5, 6}, .learned = {0, 1, 0}});
  return batch;
}

TEST(SupervisedBatch, TargetsAreTheLearnedTokensOfTheRowsThatArePacked) {
  const SupervisedBatch batch = two_conversations();
  EXPECT_TRUE(batch.validate().ok());
  EXPECT_EQ(batch.learned_tokens(), 3);
  EXPECT_EQ(sequence_lengths(batch), (std::vector<std::int64_t>{4, 2, 3}));
  const PackedBatch all = pack_supervised(batch, {0, 3});
  EXPECT_EQ(all.ids, (std::vector<std::int32_t>{5, 6, 7, 8, 9, 3, 4, 5, 6}));
  EXPECT_EQ(all.cu_seqlens, (std::vector<std::int64_t>{0, 4, 6, 9}));
  EXPECT_EQ(all.targets, (std::vector<std::int64_t>{2, 3, 7}));
  const PackedBatch last = pack_supervised(batch, {1, 3});
  EXPECT_EQ(last.cu_seqlens, (std::vector<std::int64_t>{0, 2, 5}));
  EXPECT_EQ(last.targets, (std::vector<std::int64_t>{3})) << "from the first packed row on";
}

TEST(SupervisedBatch, WhatCannotBeLearnedIsRefused) {
  SupervisedBatch first = two_conversations(), empty = first, lying = first;
  first.learned.values[4] = 1;
  support::expect_failure(first.validate(), ErrorCode::kInvalidArgument, {"the first token"});
  empty.append({});
  support::expect_failure(empty.validate(), ErrorCode::kInvalidArgument, {"an empty sequence"});
  lying.learned.values.pop_back();
  lying.learned.offsets.back() = 8;
  support::expect_failure(lying.validate(), ErrorCode::kInvalidArgument, {"do not fit together"});
}

}  // namespace
}  // namespace rl
