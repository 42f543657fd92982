#include "rl/kernel/norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "for_each_isa.h"
#include "random_values.h"

namespace rl::kernel {
namespace {

TEST(RmsNorm, EqualsTheFormulaAndReturnsTheInverse) {
  for_each_isa([] {
    ThreadPool pool(2);
    for (std::int64_t size : {1, 12, 16, 48, 576, 577}) {
      const std::int64_t rows = 7;
      const auto x = random_values(rows * size, 1, 5.0F), weight = random_values(size, 2);
      std::vector<float> y(x.size()), inverse(rows);
      rms_norm(pool, x.data(), rows, size, weight.data(), 1e-5F, y.data(), inverse.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (std::int64_t i = 0; i < size; ++i)
          squares += double{x[r * size + i]} * double{x[r * size + i]};
        const double expected = 1.0 / std::sqrt(squares / static_cast<double>(size) + 1e-5);
        ASSERT_NEAR(inverse[r] / expected, 1.0, 1e-6);
        for (std::int64_t i = 0; i < size; ++i)
          ASSERT_NEAR(y[r * size + i], x[r * size + i] * expected * weight[i], 1e-5);
      }
      std::vector<float> in_place = x;
      rms_norm(pool, in_place.data(), rows, size, weight.data(), 1e-5F, in_place.data());
      ASSERT_EQ(in_place, y);
    }
  });
}

TEST(LayerNorm, EqualsTheFormulaAtEveryWidth) {
  for_each_isa([] {
    ThreadPool pool(2);
    for (std::int64_t size : {1, 15, 16, 17, 48, 1000}) {
      const std::int64_t rows = 5;
      auto x = random_values(rows * size, 12, 3.0F);
      for (float& value : x) value += 50.0F;  // a mean that would swallow the variance
      const auto weight = random_values(size, 13), bias = random_values(size, 14);
      std::vector<float> y(x.size()), moments(static_cast<std::size_t>(2 * rows));
      layer_norm(pool, x.data(), rows, size, weight.data(), bias.data(), 1e-5F, y.data(),
                 moments.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        double mean = 0, variance = 0;
        for (std::int64_t i = 0; i < size; ++i)
          mean += double{x[r * size + i]} / static_cast<double>(size);
        for (std::int64_t i = 0; i < size; ++i)
          variance += std::pow(double{x[r * size + i]} - mean, 2) / static_cast<double>(size);
        const double inverse = 1.0 / std::sqrt(variance + 1e-5);
        ASSERT_NEAR(moments[2 * r], mean, 1e-4);
        for (std::int64_t i = 0; i < size; ++i) {
          ASSERT_NEAR(
              y[r * size + i],
              (double{x[r * size + i]} - mean) * inverse * double{weight[i]} + double{bias[i]},
              size == 1 ? 2e-2 : 2e-4);
        }
      }
    }
  });
}

// Many more than one thread takes at a time.
TEST(Norms, RowsOnSeveralThreadsAreTheirOwn) {
  const std::int64_t rows = 300, size = 577;
  const auto x = random_values(rows * size, 21, 3.0F), weight = random_values(size, 22),
             bias = random_values(size, 23);
  std::vector<float> scaled(x.size()), inverse(rows), centred = x, moments(2 * rows);
  ThreadPool several(4), one(1);
  rms_norm(several, x.data(), rows, size, weight.data(), 1e-5F, scaled.data(), inverse.data());
  layer_norm(several, centred.data(), rows, size, weight.data(), bias.data(), 1e-5F, centred.data(),
             moments.data());
  std::vector<float> y(size), found(2);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x.data() + r * size;
    rms_norm(one, row, 1, size, weight.data(), 1e-5F, y.data(), found.data());
    ASSERT_TRUE(std::equal(y.begin(), y.end(), scaled.begin() + r * size)) << r;
    ASSERT_EQ(inverse[r], found[0]) << r;
    layer_norm(one, row, 1, size, weight.data(), bias.data(), 1e-5F, y.data(), found.data());
    ASSERT_TRUE(std::equal(y.begin(), y.end(), centred.begin() + r * size)) << r;
    ASSERT_EQ(moments[2 * r], found[0]) << r;
    ASSERT_EQ(moments[2 * r + 1], found[1]) << r;
  }
}

}  // namespace
}  // namespace rl::kernel
