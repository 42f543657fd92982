#include "rl/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "rl/kernel/isa.h"

namespace rl {
namespace {

std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Straight from the paper, one element at a time and in double.
struct Reference {
  double w, m = 0, v = 0;
  void step(double g, double lr, double decay, const AdamWOptions& o, int t) {
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    w *= 1 - lr * decay;
    w -= lr * (m / (1 - std::pow(double{o.beta1}, t))) /
         (std::sqrt(v / (1 - std::pow(double{o.beta2}, t))) + o.epsilon);
  }
};

TEST(AdamW, FollowsThePaperInsideAndOutsideOfDecayRanges) {
  kernel::ThreadPool pool(2);
  const AdamWOptions options{.weight_decay = 0.1F};
  for (const kernel::Isa isa : kernel::supported_isas()) {
    const kernel::Isa before = kernel::current_isa();
    kernel::set_isa(isa);
    std::vector<float> weights = noise(1003, 1);
    AdamW adam(1003, {{10, 500}, {800, 1003}}, options);
    std::vector<Reference> reference;
    for (const float w : weights) reference.push_back({w});
    for (int t = 1; t <= 5; ++t) {
      const std::vector<float> gradients = noise(1003, 100 + t);
      ASSERT_TRUE(adam.step(pool, weights, gradients, 1e-2F, 0.5F).ok());
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const bool decays = (i >= 10 && i < 500) || i >= 800;
        reference[i].step(gradients[i] * 0.5, 1e-2, decays ? 0.1 : 0.0, options, t);
      }
    }
    for (std::size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(weights[i], reference[i].w, 2e-6) << i << to_string(isa);
    EXPECT_EQ(adam.steps(), 5);
    kernel::set_isa(before);
  }
}

TEST(AdamW, GivesTheSameBitsWithAnyNumberOfThreads) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    kernel::ThreadPool pool(threads);
    std::vector<float> weights = noise(300'001, 2);
    AdamW adam(300'001, {{0, 200'000}}, {});
    for (unsigned t = 0; t < 3; ++t)
      ASSERT_TRUE(adam.step(pool, weights, noise(300'001, t), 1e-3F, 1.0F).ok());
    results.push_back(weights);
  }
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), 300'001 * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), 300'001 * sizeof(float)), 0);
}

TEST(AdamW, ContinuesFromSavedMoments) {
  kernel::ThreadPool pool(1);
  std::vector<float> through = noise(64, 3);
  AdamW one(64, {{0, 64}}, {});
  ASSERT_TRUE(one.step(pool, through, noise(64, 4), 1e-2F, 1.0F).ok());
  std::vector<float> resumed = through;
  AdamW two(64, {{0, 64}}, {});
  std::ranges::copy(one.first_moment(), two.first_moment().begin());
  std::ranges::copy(one.second_moment(), two.second_moment().begin());
  two.set_steps(one.steps());
  ASSERT_TRUE(one.step(pool, through, noise(64, 5), 1e-2F, 1.0F).ok());
  ASSERT_TRUE(two.step(pool, resumed, noise(64, 5), 1e-2F, 1.0F).ok());
  EXPECT_EQ(through, resumed);
}

TEST(L2Norm, IsExactToDoubleAndDoesNotDependOnThreads) {
  kernel::ThreadPool one(1);
  kernel::ThreadPool three(3);
  const std::vector<float> values = noise(200'003, 6);
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  EXPECT_NEAR(l2_norm(one, values), std::sqrt(sum), 1e-9 * std::sqrt(sum));
  EXPECT_EQ(l2_norm(one, values), l2_norm(three, values));
  EXPECT_EQ(l2_norm(one, {}), 0.0);
}

TEST(L2Norm, ShowsNonFiniteValues) {
  kernel::ThreadPool pool(1);
  std::vector<float> values(100, 1.0F);
  values[57] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(l2_norm(pool, values)));
  values[57] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(l2_norm(pool, values)));
}

TEST(ClipFactor, OnlyShrinks) {
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_NEAR(clip_factor(4.0, 1.0), 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(clip_factor(4.0, 0.0), 1.0);
}

}  // namespace
}  // namespace rl
