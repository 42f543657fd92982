#include "rl/kernel/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "for_each_isa.h"
#include "random_values.h"

namespace rl::kernel {
namespace {

TEST(Rope, RotatesPairsAndUndoesItself) {
  for_each_isa([] {
    ThreadPool pool(2);
    const RopeShape shape{.heads = 3, .head_dim = 20, .half = 8};  // four elements pass unchanged
    const std::vector<float> frequencies = random_values(8, 3);
    std::vector<float> cos(64 * 8), sin(64 * 8), negative_sin;
    rope_tables(frequencies, 64, 1.0F, cos.data(), sin.data());
    for (float s : sin) negative_sin.push_back(-s);
    const std::vector<std::int32_t> positions = {0, 5, 63};
    const auto x = random_values(3 * 60, 4);
    std::vector<float> y(x.size());
    rope(pool, shape, x.data(), 3, 0, positions.data(), cos.data(), sin.data(), y.data());
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t h = 0; h < 3; ++h) {
        const std::int64_t at = r * 60 + h * 20;
        for (std::int64_t i = 0; i < 8; ++i) {
          const double angle = static_cast<float>(positions[r]) * frequencies[i];
          ASSERT_NEAR(y[at + i], x[at + i] * std::cos(angle) - x[at + 8 + i] * std::sin(angle),
                      1e-6);
          ASSERT_NEAR(y[at + 8 + i], x[at + 8 + i] * std::cos(angle) + x[at + i] * std::sin(angle),
                      1e-6);
        }
        for (std::int64_t i = 16; i < 20; ++i) ASSERT_EQ(y[at + i], x[at + i]);
      }
    }
    rope(pool, shape, y.data(), 3, 0, positions.data(), cos.data(), negative_sin.data(), y.data());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 1e-6);
  });
}

TEST(Rope, TablesAreStretchedByTheFactorOfAttention) {
  const std::vector<float> frequencies = {1.0F, 0.25F};
  std::vector<float> cos(3 * 2), sin(3 * 2);
  rope_tables(frequencies, 3, 1.5F, cos.data(), sin.data());
  for (std::size_t p = 0; p < 3; ++p) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(p) * double{frequencies[i]};
      EXPECT_NEAR(cos[p * 2 + i], 1.5 * std::cos(angle), 1e-6) << p << " " << i;
      EXPECT_NEAR(sin[p * 2 + i], 1.5 * std::sin(angle), 1e-6) << p << " " << i;
    }
  }
}

TEST(Rope, RowsMayBePartsOfWiderOnes) {
  const RopeShape shape{.heads = 2, .head_dim = 6, .half = 2};
  const std::int64_t rows = 3000, width = 12, stride = 17;  // on every thread several
  std::vector<float> cos(50 * 2), sin(50 * 2);
  rope_tables(random_values(2, 31), 50, 1.0F, cos.data(), sin.data());
  std::vector<std::int32_t> positions;
  for (std::int32_t r = 0; r < rows; ++r) positions.push_back(r * 7 % 50);
  const auto x = random_values(rows * stride, 32);
  std::vector<float> y = x, alone(width);
  ThreadPool several(3), one(1);
  rope(several, shape, y.data(), rows, stride, positions.data(), cos.data(), sin.data(), y.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    rope(one, shape, x.data() + r * stride, 1, 0, positions.data() + r, cos.data(), sin.data(),
         alone.data());
    for (std::int64_t i = 0; i < stride; ++i) {
      const std::int64_t at = r * stride + i;
      ASSERT_EQ(y[at], i < width ? alone[i] : x[at]) << r << " " << i;
    }
  }
}

}  // namespace
}  // namespace rl::kernel
