#include "rl/rollout/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "rl/kernel/philox.h"

namespace rl {
namespace {

SampledToken sample(const SamplingParams& params, std::span<const float> logits,
                    std::uint64_t position = 0, std::span<const std::int32_t> forbidden = {}) {
  kernel::ThreadPool pool(1);
  const SampleRow row{.params = &params,
                      .logits = logits,
                      .history = {},
                      .forbidden = forbidden,
                      .position = position};
  SampledToken token;
  sample_tokens(pool, std::span(&row, 1), std::span(&token, 1));
  return token;
}

std::set<std::int32_t> reachable(const SamplingParams& params, std::span<const float> logits,
                                 int draws = 2000) {
  std::set<std::int32_t> ids;
  for (int i = 0; i < draws; ++i)
    ids.insert(sample(params, logits, static_cast<std::uint64_t>(i)).id);
  return ids;
}

// Known answers of the generator's authors.
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOneAndFillsTheInterval) {
  double sum = 0, lowest = 1, highest = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double u = philox_uniform(42, 1, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    lowest = std::min(lowest, u);
    highest = std::max(highest, u);
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  EXPECT_LT(lowest, 0.001);
  EXPECT_GT(highest, 0.999);
}

TEST(Sampler, GreedyTakesTheLargestAndTheFirstOfEquals) {
  const std::vector<float> logits = {1.0F, 3.0F, 3.0F, 2.0F};
  const SampledToken token = sample({.temperature = 0.0F}, logits);
  EXPECT_EQ(token.id, 1);
  const double sum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  EXPECT_NEAR(token.logprob, 3.0 - std::log(sum), 1e-6);
}

TEST(Sampler, ReportsTheLogprobBeforeTopKAndTopP) {
  const std::vector<float> logits = {2.0F, 0.0F, 0.0F, 0.0F};
  const SampledToken token = sample({.temperature = 0.5F, .top_p = 0.5F, .top_k = 2}, logits);
  EXPECT_EQ(token.id, 0);
  EXPECT_NEAR(token.logprob, 4.0 - std::log(std::exp(4.0) + 3.0), 1e-6);
}

TEST(Sampler, TopKKeepsTheLikeliestWithTiesByIds) {
  const std::vector<float> logits = {0.0F, 1.0F, 1.0F, 1.0F, 0.5F};
  EXPECT_EQ(reachable({.top_k = 2}, logits), (std::set<std::int32_t>{1, 2}));
  EXPECT_EQ(reachable({.top_k = 1}, logits), (std::set<std::int32_t>{1}));
  EXPECT_EQ(reachable({.top_k = -1}, logits).size(), 5U);
  EXPECT_EQ(reachable({.top_k = 99}, logits).size(), 5U);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 0.5, 0.25, 0.125, 0.125.
  const std::vector<float> logits = {std::log(0.125F), std::log(0.5F), std::log(0.125F),
                                     std::log(0.25F)};
  EXPECT_EQ(reachable({.top_p = 0.4F}, logits), (std::set<std::int32_t>{1}));
  EXPECT_EQ(reachable({.top_p = 0.7F}, logits), (std::set<std::int32_t>{1, 3}));
  EXPECT_EQ(reachable({.top_p = 0.8F}, logits), (std::set<std::int32_t>{0, 1, 3}));
  EXPECT_EQ(reachable({.top_p = 1e-6F}, logits), (std::set<std::int32_t>{1}));
  // After top-k 2 the two have 2/3 and 1/3.
  EXPECT_EQ(reachable({.top_p = 0.6F, .top_k = 2}, logits), (std::set<std::int32_t>{1}));
}

TEST(Sampler, TopPReachesBeyondTheFirstSortedCandidates) {
  const std::vector<float> logits(1000, 0.0F);
  const std::set<std::int32_t> ids = reachable({.top_p = 0.5F}, logits, 20000);
  EXPECT_EQ(ids.size(), 500U);
  EXPECT_EQ(*ids.rbegin(), 499);
}

TEST(Sampler, NeverChoosesWhatIsForbiddenOrImpossible) {
  const float impossible = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {5.0F, impossible, 1.0F, 0.0F};
  const std::vector<std::int32_t> forbidden = {0};
  for (float temperature : {0.0F, 1.0F}) {
    for (std::uint64_t position = 0; position < 300; ++position) {
      const SampledToken token = sample({.temperature = temperature}, logits, position, forbidden);
      ASSERT_TRUE(token.id == 2 || token.id == 3);
      ASSERT_NEAR(token.logprob,
                  logits[static_cast<std::size_t>(token.id)] -
                      std::log(std::exp(5.0) + std::exp(1.0) + 1.0),
                  1e-6);
    }
  }
}

TEST(Sampler, SaysWhenLogitsAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float bad : {std::nanf(""), infinity}) {
    for (std::size_t at : {0U, 1U, 2U}) {
      std::vector<float> logits = {1.0F, 2.0F, 0.5F};
      logits[at] = bad;
      for (const SamplingParams& params : {SamplingParams{.temperature = 0.0F}, SamplingParams{},
                                           SamplingParams{.top_p = 0.5F, .top_k = 2}}) {
        EXPECT_EQ(sample(params, logits).id, -1);
      }
    }
  }
  EXPECT_EQ(sample({}, std::vector<float>(4, -infinity)).id, -1);
}

}  // namespace
}  // namespace rl
