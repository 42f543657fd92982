#include "rl/worker/disco.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

// Two prompts: of the first one response is right, two are wrong and one is neither; of the second
// both are right. One token each, but for the last.
RolloutBatch disco_samples() {
  RolloutBatch batch;
  batch.prompts.append(std::vector<std::int32_t>{1, 2});
  batch.prompts.append(std::vector<std::int32_t>{1, 3});
  for (const int prompt : {0, 0, 0, 0, 1, 1}) {
    batch.responses.append(prompt == 1 && batch.responses.rows() == 5
                               ? std::vector<std::int32_t>{4, 5}
                               : std::vector<std::int32_t>{4});
    batch.prompt_of.push_back(prompt);
    batch.stopped.push_back(1);
  }
  batch.logprobs = {-1, -2, -1.5F, -3, -1, -1, -2};
  return batch;
}

const std::vector<float> kLabels{1, -1, -1, 0, 1, 1};
const MiniBatch kWhole{.first_sample = 0, .last_sample = 6, .tokens_total = 7, .samples_total = 6};

TEST(DiscoWeights, WrongResponsesShareByTheirScores) {
  const RolloutBatch batch = disco_samples();
  const auto communicator = make_single_communicator();
  CommunicatorRanks ranks(*communicator);
  const DiscoWeights weights =
      *disco_weights(batch, kLabels, batch.logprobs, batch.logprobs, kWhole, {.tau = 0.5}, ranks);
  const double likely = std::exp(-3.0) / (std::exp(-3.0) + std::exp(-4.0));
  const std::vector<double> expected{-0.5, (1 - likely) / 2, likely / 2, 0, 0,
                                     0};  // two prompts, of which one has nothing to say
  ASSERT_EQ(weights.of_samples.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(weights.of_samples[i], expected[i], 1e-6) << i;
  EXPECT_EQ(weights.kl, 0.0);
  EXPECT_EQ(weights.mean_kl, 0.0);
}

// The weights are the gradient of -(mean right - tau log mean exp(wrong / tau)) / prompts by the
// scores.
TEST(DiscoWeights, AreTheGradientOfTheObjective) {
  const RolloutBatch batch = disco_samples();
  const auto communicator = make_single_communicator();
  CommunicatorRanks ranks(*communicator);
  const double tau = 0.7;
  const auto loss = [&](std::vector<float> s) {
    return -(s[0] - tau * std::log((std::exp(s[1] / tau) + std::exp(s[2] / tau)) / 2)) / 2;
  };
  const DiscoWeights weights =
      *disco_weights(batch, kLabels, batch.logprobs, batch.logprobs, kWhole, {.tau = tau}, ranks);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<float> up = batch.logprobs, down = batch.logprobs;
    up[i] += 0.01F;
    down[i] -= 0.01F;
    EXPECT_NEAR(weights.of_samples[i], (loss(up) - loss(down)) / 0.02, 1e-4) << i;
  }
}

TEST(DiscoWeights, TheKlHasAPriceAboveDelta) {
  const RolloutBatch batch = disco_samples();
  const auto communicator = make_single_communicator();
  CommunicatorRanks ranks(*communicator);
  std::vector<float> now = batch.logprobs;
  now[3] += 0.5F;
  const double kl = (std::exp(0.5) - 1 - 0.5) / 7;
  const DiscoWeights above = *disco_weights(batch, kLabels, now, batch.logprobs, kWhole,
                                            {.delta = 0.01, .beta = 10}, ranks);
  EXPECT_NEAR(above.mean_kl, kl, 1e-7);
  EXPECT_NEAR(above.kl, 10 * (kl - 0.01), 1e-5);
  EXPECT_EQ((disco_weights(batch, kLabels, now, batch.logprobs, kWhole, {.delta = 0.1, .beta = 10},
                           ranks))
                ->kl,
            0.0);
}

TEST(DiscoScores, AreMeansOfLogProbsOrOfRatios) {
  const RolloutBatch batch = disco_samples();
  std::vector<float> now = batch.logprobs;
  now[6] += 1.0F;
  EXPECT_EQ(disco_scores(batch, now, batch.logprobs, DiscoScore::kLogL, 4, 6),
            (std::vector<double>{-1, -1}));
  const std::vector<double> ratios =
      disco_scores(batch, now, batch.logprobs, DiscoScore::kLratio, 4, 6);
  EXPECT_NEAR(ratios[0], 1.0, 1e-7);
  EXPECT_NEAR(ratios[1], (1 + std::exp(1.0)) / 2, 1e-6);
}

}  // namespace
}  // namespace rl
