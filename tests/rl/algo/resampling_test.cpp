#include "rl/algo/resampling.h"

#include <gtest/gtest.h>

#include <numeric>

namespace rl {
namespace {

TEST(Resampling, WeightsFollowTheMethod) {
  const std::vector<double> scores{-2, 0, 1, 3};
  const auto weights = [&](ReweightMethod method, double power = 2.0) {
    return resampling_weights(scores, method, power);
  };
  const std::vector<double> pow = weights(ReweightMethod::kPow);
  for (const auto& [i, expected] : {std::pair(0, 4.0), {1, 0.0}, {2, 1.0}, {3, 9.0}})
    EXPECT_NEAR(pow[static_cast<std::size_t>(i)], expected, 1e-7);
  EXPECT_NEAR(weights(ReweightMethod::kMaxMin)[0], 1.0, 1e-7);
  EXPECT_NEAR(weights(ReweightMethod::kMaxMin)[2], 0.0, 1e-7);
  EXPECT_NEAR(weights(ReweightMethod::kMaxRandom)[3], 0.4, 1e-7);
  EXPECT_NEAR(weights(ReweightMethod::kMaxRandom)[0], 0.1, 1e-7);
}

TEST(Resampling, DrawsAsManyAsThereAreInProportion) {
  std::vector<double> weights(1000, 1e-8);
  for (std::size_t i = 0; i < 100; ++i) weights[i] = i < 50 ? 3.0 : 1.0;
  const std::vector<std::int32_t> repeats = resample(weights, 7);
  EXPECT_EQ(std::accumulate(repeats.begin(), repeats.end(), 0), 1000);
  const int heavy = std::accumulate(repeats.begin(), repeats.begin() + 50, 0);
  EXPECT_EQ(std::accumulate(repeats.begin() + 100, repeats.end(), 0), 0);
  EXPECT_NEAR(heavy, 750, 60);  // over four standard deviations
  EXPECT_EQ(resample(weights, 7), repeats);
  EXPECT_NE(resample(weights, 8), repeats);
}

TEST(Resampling, NamesAreVerls) {
  EXPECT_EQ(*parse_reweight_method("max_random"), ReweightMethod::kMaxRandom);
  EXPECT_FALSE(parse_reweight_method("uniform").ok());
}

}  // namespace
}  // namespace rl
