#include "rl/rollout/logits_processor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rl {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
using Ids = std::vector<std::int32_t>;

std::vector<float> process(const SamplingParams& params, const Ids& history, std::int64_t generated,
                           const Ids& forbidden = {}) {
  const std::vector<float> logits = {1.0F, -1.0F, 2.0F, 0.0F};
  std::vector<float> out;
  process_logits(
      {.params = &params, .history = history, .generated = generated, .forbidden = forbidden},
      logits, out);
  return out;
}

TEST(LogitsProcessor, PenalizesWhatTheCompletionHoldsAndHowOften) {
  const SamplingParams params{.presence_penalty = 0.5F, .frequency_penalty = 0.25F};
  // Of the prompt's 2 nothing is taken; 0 came twice, 1 once.
  EXPECT_EQ(process(params, {2, 2, 0, 1, 0}, 3), (std::vector<float>{0.0F, -1.75F, 2.0F, 0.0F}));
  EXPECT_EQ(process(params, {2, 2}, 0), (std::vector<float>{1.0F, -1.0F, 2.0F, 0.0F}));
}

TEST(LogitsProcessor, RepetitionCountsThePromptToo) {
  EXPECT_EQ(process({.repetition_penalty = 2.0F}, {2, 1, 1}, 1),
            (std::vector<float>{1.0F, -2.0F, 1.0F, 0.0F}));
}

TEST(LogitsProcessor, AddsBiasesBehindPenaltiesAndForbidsLast) {
  const SamplingParams params{
      .repetition_penalty = 2.0F,
      .logit_bias = {{.id = 2, .bias = 10.0F}, {.id = 3, .bias = -1.0F}, {.id = 9, .bias = 1.0F}}};
  EXPECT_EQ(process(params, {2}, 0, {3, 17}), (std::vector<float>{1.0F, -1.0F, 11.0F, kNever}));
}

TEST(LogitsProcessor, ForbidsTheEndOfABadWordBehindItsBeginning) {
  const SamplingParams params{.bad_words = {{7}, {1, 2}, {3, 1, 4}, {5, 5, 5}}};
  EXPECT_EQ(forbidden_ids(params, {}, Ids{3, 1}, 0), (Ids{7, 2, 4}));
  EXPECT_EQ(forbidden_ids(params, {}, Ids{1}, 0), (Ids{7, 2}));
  EXPECT_EQ(forbidden_ids(params, {}, Ids{1, 9}, 0), (Ids{7}));
  EXPECT_EQ(forbidden_ids(params, {}, Ids{5, 5}, 0), (Ids{7, 5}));
}

TEST(LogitsProcessor, ForbidsStopsUntilTheMinimum) {
  const SamplingParams params{.max_new_tokens = 9, .min_new_tokens = 2, .stop_ids = {4}};
  const Ids eos = {8};
  EXPECT_EQ(forbidden_ids(params, eos, Ids{1}, 1), (Ids{4, 8}));
  EXPECT_TRUE(forbidden_ids(params, eos, Ids{1}, 2).empty());
  SamplingParams ignores = params;
  ignores.ignore_eos = true;
  EXPECT_EQ(forbidden_ids(ignores, eos, Ids{1}, 0), (Ids{4}));
}

TEST(LogitsProcessor, KnowsWhenItChangesNothing) {
  const SamplingParams penalized{.presence_penalty = 1.0F};
  EXPECT_FALSE((LogitsContext{.params = &penalized, .history = {}, .generated = 0, .forbidden = {}}
                    .changes_logits()));
  EXPECT_TRUE((LogitsContext{.params = &penalized, .history = {}, .generated = 1, .forbidden = {}}
                   .changes_logits()));
}

}  // namespace
}  // namespace rl
