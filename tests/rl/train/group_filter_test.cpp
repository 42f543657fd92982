#include "rl/train/group_filter.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

using Rows = std::vector<std::vector<std::int64_t>>;

// Six prompts over two workers, two responses each; prompts 0, 3 and 5 have responses of one score.
const std::vector<PromptShard> kShards{{.prompts = {0, 1, 4}}, {.prompts = {2, 3, 5}}};
const std::vector<std::vector<double>> kScores{{1, 1, 0, 1, 1, 0}, {0, 0.5, 0, 0, 1, 1}};

const std::vector<std::vector<std::uint8_t>> kAllScored{std::vector<std::uint8_t>(6),
                                                        std::vector<std::uint8_t>(6)};

TEST(GroupFilter, KeepsPromptsWhoseResponsesDifferInTheOrderOfTheRound) {
  EXPECT_EQ(informative_prompts(kShards, kScores, kAllScored, 2, 6), (Rows{{1, 2}, {0}}));
  EXPECT_EQ(informative_prompts(kShards, kScores, kAllScored, 2, 2),
            (Rows{{1}, {0}}));  // prompts 1 and 2, before 4
}

TEST(GroupFilter, AResponseAloneAlwaysCounts) {
  EXPECT_EQ(informative_prompts({{.prompts = {0, 1}}}, {{0.0, 0.0}}, {{0, 0}}, 1, 2),
            (Rows{{0, 1}}));
}

// One without a score is not one that scored 0.
TEST(GroupFilter, PromptsWithoutAScoreAreNotKept) {
  EXPECT_EQ(informative_prompts({{.prompts = {0, 1, 2}}}, {{0.0, 0.0, 0.0}}, {{0, 1, 0}}, 1, 2),
            (Rows{{0, 2}}));
  EXPECT_EQ(
      informative_prompts({{.prompts = {0, 1}}}, {{0.0, 1.0, 0.0, 1.0}}, {{0, 1, 0, 0}}, 2, 2),
      (Rows{{1}}));
}

// What three rounds leave is cut into the mini-batches of one batch, on whichever worker its
// prompts are.
TEST(GroupFilter, RoundsAreNumberedOnAndCutIntoMiniBatches) {
  std::vector<PromptShard> kept;
  append_prompts(kept, kShards, {{1, 2}, {0}});
  EXPECT_EQ(kept[0].prompts, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(kept[1].prompts, (std::vector<std::int64_t>{1}));
  append_prompts(kept, kShards, {{}, {0, 2}});
  EXPECT_EQ(kept[1].prompts, (std::vector<std::int64_t>{1, 3, 4}));
  EXPECT_EQ(count_prompts(kept), 5);
  cut_mini_batches(kept, 2);
  EXPECT_EQ(kept[0].mini_batch_offsets, (std::vector<std::int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(kept[1].mini_batch_offsets, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace rl
