#include "rl/worker/response_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rl {
namespace {

using ScoredIds = std::vector<std::int32_t>;
using ScoredPlaces = std::vector<std::int64_t>;

// Two samples of the second prompt around one of the first.
RolloutBatch three_samples() {
  RolloutBatch batch;
  batch.prompts.append(ScoredIds{1, 2, 3});
  batch.prompts.append(ScoredIds{4});
  batch.prompt_of = {1, 0, 1};
  batch.responses.append(ScoredIds{5, 6});
  batch.responses.append(ScoredIds{7});
  batch.responses.append(ScoredIds{8, 9, 10});
  return batch;
}

TEST(PackSamples, EachResponseFollowsItsOwnPrompt) {
  RolloutBatch batch = three_samples();
  EXPECT_EQ(sample_lengths(batch), (ScoredPlaces{3, 4, 4}));
  const PackedBatch packed = pack_samples(batch, {1, 3});
  EXPECT_EQ(packed.ids, (ScoredIds{1, 2, 3, 7, 4, 8, 9, 10}));
  EXPECT_EQ(packed.cu_seqlens, (ScoredPlaces{0, 4, 8}));
  EXPECT_EQ(packed.targets, (ScoredPlaces{3, 5, 6, 7}));
  EXPECT_TRUE(packed.rope_lengths.empty());
}

TEST(PackSamples, MasksAndLengthsAreThoseOfTheSamplesThatArePacked) {
  RolloutBatch batch = three_samples();
  batch.response_mask = {1, 1, 1, 1, 0, 1};
  batch.lengths_max = {20, 30, 40};
  const PackedBatch packed = pack_samples(batch, {2, 3});
  EXPECT_EQ(packed.ids, (ScoredIds{4, 8, 9, 10}));
  EXPECT_EQ(packed.targets, (ScoredPlaces{1, 3})) << "a tool wrote the second token";
  EXPECT_EQ(packed.rope_lengths, ScoredPlaces{40});
}

TEST(AtTargets, IsTheHeadAtTheTokenBefore) {
  PackedBatch packed;
  packed.append(ScoredIds{1, 2, 3}, 2);
  packed.append(ScoredIds{4, 5, 6}, 1);
  const at::Tensor head = at::arange(6.0).view({6, 1});
  const at::Tensor found = at_targets(head, packed);
  ASSERT_EQ(found.numel(), 3);
  EXPECT_EQ(found[0].item<float>(), 1.0F);
  EXPECT_EQ(found[1].item<float>(), 3.0F);
  EXPECT_EQ(found[2].item<float>(), 4.0F);
}

}  // namespace
}  // namespace rl
