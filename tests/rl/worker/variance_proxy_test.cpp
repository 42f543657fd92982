#include "rl/worker/variance_proxy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

// Two responses, of two tokens and of one.
RolloutBatch batch_of_three_tokens() {
  RolloutBatch batch;
  batch.prompts.append(std::vector<std::int32_t>{1});
  batch.prompt_of = {0, 0};
  batch.responses.append(std::vector<std::int32_t>{2, 3});
  batch.responses.append(std::vector<std::int32_t>{4});
  batch.logprobs = {std::log(0.5F), std::log(0.25F), std::log(0.8F)};
  batch.stopped = {1, 1};
  batch.lengths_max = {4, 4};
  return batch;
}

Probabilities three_probabilities() {
  return {.logprobs = {std::log(0.5F), std::log(0.25F), std::log(0.8F)},
          .squares = {0.4F, 0.3F, 0.66F}};
}

// W: 1 - 1 + 0.4 and 1 - 0.5 + 0.3 make 1.2; 1 - 1.6 + 0.66 makes 0.06. A: the mean of 2 and 0, and
// -1.
const std::vector<float> kThreeAdvantages = {2.0F, 0.0F, -1.0F};

TEST(VarianceParts, AreMeansOverAllSamples) {
  const Metrics parts =
      variance_parts(batch_of_three_tokens(), three_probabilities(), kThreeAdvantages, {},
                     4);  // two more on another worker
  EXPECT_NEAR(parts.at("variance_proxy/expected_w"), (1.2 + 0.06) / 4, 1e-6);
  EXPECT_NEAR(parts.at("variance_proxy/expected_a_squared"), (1.0 + 1.0) / 4, 1e-6);
  EXPECT_NEAR(parts.at("variance_proxy/proxy2_total_power"), (1.2 + 0.06) / 4, 1e-6);
}

TEST(VarianceParts, CountASampleAsOftenAsItIsUsed) {
  const Metrics parts = variance_parts(batch_of_three_tokens(), three_probabilities(),
                                       kThreeAdvantages, {.repeats = {0, 2}, .positive = {}}, 2);
  EXPECT_NEAR(parts.at("variance_proxy/expected_w"), 0.06, 1e-6);
}

TEST(VarianceProxies, SplitPowerIntoSignalAndNoise) {
  Metrics metrics{{"variance_proxy/proxy2_total_power", 0.31}, {"actor/grad_norm", 0.1}};
  finish_variance_proxies(metrics, 4);
  EXPECT_NEAR(metrics.at("variance_proxy/proxy1_signal_strength"), 0.01, 1e-12);
  EXPECT_NEAR(metrics.at("variance_proxy/proxy3_pure_noise"), 0.1, 1e-12);
}

TEST(VarianceProxies, NoiseIsNeverNegative) {
  Metrics metrics{{"variance_proxy/proxy2_total_power", 0.5}, {"actor/grad_norm", 1.0}};
  finish_variance_proxies(metrics, 4);
  EXPECT_EQ(metrics.at("variance_proxy/proxy3_pure_noise"), 0.0);
}

TEST(VarianceProxies, AreNotThereUnlessAskedFor) {
  Metrics metrics{{"actor/grad_norm", 1.0}};
  finish_variance_proxies(metrics, 4);
  EXPECT_EQ(metrics.size(), 1U);
}

}  // namespace
}  // namespace rl
