#include "rl/run/rl/sample_uses.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

// A prompt's samples score their number; of the second prompt none has been cut.
StepBatch scored(std::int64_t prompts, std::int64_t workers) {
  FakeBatches batches;
  StepBatch batch = fake_batch(batches, prompts, workers, 4);
  for (WorkerShare& share : batch.shares) {
    for (SampleGroup& group : share.groups) {
      for (std::size_t i = 0; i < group.samples.size(); ++i) {
        group.samples[i].score = static_cast<double>(i);
        group.samples[i].stopped = i % 2 == 0 || group.prompt == 1;
      }
    }
  }
  return batch;
}

// How often each sample counts, in the order of prompts.
std::vector<std::int32_t> repeats(const StepBatch& batch, const std::vector<SampleUse>& uses) {
  std::map<std::int64_t, std::vector<std::int32_t>> by_prompt;
  for (std::size_t worker = 0; worker < uses.size(); ++worker) {
    auto next = uses[worker].repeats.begin();
    for (const SampleGroup& group : batch.shares[worker].groups) {
      by_prompt[group.prompt] = {next, next + 4};
      next += 4;
    }
  }
  std::vector<std::int32_t> all;
  for (const auto& [prompt, counts] : by_prompt)
    all.insert(all.end(), counts.begin(), counts.end());
  return all;
}

TEST(SampleUses, EachCountsOnceUnlessSomethingElseIsAskedFor) {
  const std::vector<SampleUse> uses = sample_uses(scored(2, 2), {}, 1);
  EXPECT_EQ(uses, std::vector<SampleUse>(2));
}

TEST(SampleUses, TruncatedResponsesDoNotCount) {
  const StepBatch batch = scored(2, 2);
  EXPECT_EQ(repeats(batch, sample_uses(batch, {.mask_truncated = true}, 1)),
            (std::vector<std::int32_t>{1, 0, 1, 0, 1, 1, 1, 1}));
}

TEST(SampleUses, AResponseIsRightFromItsScoreOn) {
  const std::vector<SampleUse> uses = sample_uses(scored(1, 1), {.positive_score = 2.0}, 1);
  EXPECT_EQ(uses[0].positive, (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_TRUE(uses[0].repeats.empty());
}

TEST(SampleUses, WhatIsDrawnAgainDoesNotDependOnWhoHasTheSample) {
  const SampleUseOptions options{.pf_ppo = PfPpoOptions{}, .seed = 3};
  const StepBatch alone = scored(4, 1), shared = scored(4, 2);
  const std::vector<std::int32_t> drawn = repeats(alone, sample_uses(alone, options, 5));
  EXPECT_EQ(std::accumulate(drawn.begin(), drawn.end(), 0), 16) << "as many as there were";
  EXPECT_EQ(drawn[0], 0) << "a weight of its score, squared";
  EXPECT_EQ(drawn, repeats(shared, sample_uses(shared, options, 5)));
  EXPECT_NE(drawn, repeats(alone, sample_uses(alone, options, 6))) << "of another step";
}

TEST(SampleUses, WhatIsDrawnAgainAndTruncatedDoesNotCount) {
  const StepBatch batch = scored(1, 1);
  SampleUseOptions options{.pf_ppo = PfPpoOptions{}, .seed = 3};
  const std::vector<std::int32_t> drawn = repeats(batch, sample_uses(batch, options, 1));
  options.mask_truncated = true;
  EXPECT_EQ(repeats(batch, sample_uses(batch, options, 1)),
            (std::vector<std::int32_t>{drawn[0], 0, drawn[2], 0}));
}

}  // namespace
}  // namespace rl
