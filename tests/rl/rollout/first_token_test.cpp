// A first token at its own temperature (FIRE).
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "rl/rollout/sampler.h"

namespace rl {
namespace {

// Token 2 is as good as certain, and of the others each is less likely than the one before.
std::vector<float> logits() { return {9.0F, 8.0F, 30.0F, 7.0F, 6.0F, 5.0F}; }

SampledToken sample_at(const SamplingParams& params, std::int64_t generated,
                       std::uint64_t position) {
  kernel::ThreadPool pool(1);
  const std::vector<float> row_logits = logits();
  const SampleRow row{.params = &params,
                      .logits = row_logits,
                      .history = {},
                      .forbidden = {},
                      .generated = generated,
                      .position = position};
  SampledToken token;
  sample_tokens(pool, std::span(&row, 1), std::span(&token, 1));
  return token;
}

std::set<std::int32_t> reachable_first(const SamplingParams& params, std::int64_t generated) {
  std::set<std::int32_t> ids;
  for (std::uint64_t i = 0; i < 500; ++i) ids.insert(sample_at(params, generated, i).id);
  return ids;
}

TEST(FirstToken, IsHotAndTheOthersAreNot) {
  const SamplingParams fire{.first_temperature = 30.0F, .first_top_k = 3};
  EXPECT_EQ(reachable_first(fire, 0),
            (std::set<std::int32_t>{0, 1, 2}));  // the three likeliest, and no other
  EXPECT_EQ(reachable_first(fire, 1), (std::set<std::int32_t>{2}));
  EXPECT_EQ(reachable_first({}, 0), (std::set<std::int32_t>{2}));
}

TEST(FirstToken, ItsOwnTopKGoesFirst) {
  EXPECT_EQ(reachable_first({.top_k = 2, .first_temperature = 30.0F, .first_top_k = 5}, 0),
            (std::set<std::int32_t>{0, 2}));
  EXPECT_EQ(reachable_first({.first_temperature = 30.0F}, 0).size(), 6u);
}

TEST(FirstToken, ItsLogProbIsThatOfTheOrdinaryTemperature) {
  const SamplingParams fire{.temperature = 0.5F, .first_temperature = 30.0F, .first_top_k = 3};
  double sum = 0;
  for (const float logit : logits()) sum += std::exp((logit - 30.0) / 0.5);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const SampledToken token = sample_at(fire, 0, i);
    EXPECT_NEAR(token.logprob,
                (logits()[static_cast<std::size_t>(token.id)] - 30.0) / 0.5 - std::log(sum), 1e-4);
  }
}

TEST(FirstToken, ABadTemperatureIsRefused) {
  EXPECT_FALSE(SamplingParams{.first_temperature = -1.0F}.validate().ok());
  EXPECT_FALSE(SamplingParams{.first_top_k = -1}.validate().ok());
}

}  // namespace
}  // namespace rl
