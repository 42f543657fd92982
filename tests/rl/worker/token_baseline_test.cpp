// The optimal token baselines of responses in which tools speak; the numbers are verl 0.9.1's.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rl/worker/token_estimates.h"

namespace rl {
namespace {

// Three responses to one prompt, of two of which the policy wrote only a part, and one each to two
// others.
RolloutBatch baseline_samples() {
  RolloutBatch batch;
  for (int prompt = 0; prompt < 3; ++prompt) batch.prompts.append(std::vector<std::int32_t>{1});
  for (const int length : {4, 2, 4, 4, 2})
    batch.responses.append(std::vector<std::int32_t>(static_cast<std::size_t>(length), 5));
  batch.prompt_of = {0, 0, 1, 0, 2};
  batch.response_mask = {1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1};
  batch.logprobs.assign(13, -1.0F);
  batch.stopped.assign(5, 1);
  return batch;
}

Probabilities probabilities() {
  Probabilities of{.logprobs = {},
                   .squares = {.4F, .7F, 0, .4F, .2F, .85F, .5F, .4F, .6F, .3F, .5F, .2F, .25F}};
  for (const double p : {.5, .8, 1e-3, .5, .125, .9, .6, .3, .7, .2, .5, .3, .3})
    of.logprobs.push_back(static_cast<float>(std::log(p)));
  return of;
}

TokenEstimates estimate(std::string_view estimator) {
  const auto estimates =
      estimate_tokens(baseline_samples(), {}, {}, {.scores = {1, 0.25, 2, -1, 0.5}},
                      {.estimator = &advantage_estimator(estimator), .gae = {}}, probabilities());
  EXPECT_TRUE(estimates.ok()) << estimates.status().to_string();
  return *estimates;
}

void expect_near(const std::vector<float>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
}

TEST(TokenBaseline, ComparesPlacesOfTheResponse) {
  const TokenEstimates of = estimate("optimal_token_baseline");
  expect_near(of.advantages,
              {1.2352941, 1, 1, 0.4852941, 0, 2, 2, 2, 2, -0.7647059, -1.0338163, 0.5, 0.5});
  expect_near(of.returns, {1, 1, 1, 0.25, 0.25, 2, 2, 2, 2, -1, -1, 0.5, 0.5});
}

TEST(TokenBaseline, OrTheTokensThatThePolicyChose) {
  expect_near(estimate("tir_optimal_token_baseline").advantages,
              {1.2352941, 1.1730770, 1, 0.4852941, 0.4230770, 2, 2, 2, 2, -0.7647059, -0.8269230,
               0.5, 0.5});
}

TEST(TokenBaseline, NeedsProbabilitiesOfEveryToken) {
  Probabilities few = probabilities();
  few.squares.pop_back();
  EXPECT_FALSE(
      estimate_tokens(baseline_samples(), {}, {}, {.scores = {1, 0.25, 2, -1, 0.5}},
                      {.estimator = &advantage_estimator("optimal_token_baseline"), .gae = {}}, few)
          .ok());
  EXPECT_FALSE(
      estimate_tokens(baseline_samples(), {}, {}, {.scores = {1, 0.25, 2, -1, 0.5}},
                      {.estimator = &advantage_estimator("reinforce_plus_plus"), .gae = {}},
                      probabilities())
          .ok());
}

}  // namespace
}  // namespace rl
