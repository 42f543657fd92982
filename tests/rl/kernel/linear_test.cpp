#include "rl/kernel/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "for_each_isa.h"
#include "random_values.h"

namespace rl::kernel {
namespace {

struct LayerSize {
  std::int64_t in;
  std::int64_t out;
};

// Whole vectors, tails of every kind, sizes below one vector, and outputs that no tile divides.
const std::vector<LayerSize> kLayerSizes = {{1, 1},   {3, 5},    {12, 48},   {16, 24},
                                            {48, 96}, {100, 31}, {576, 192}, {577, 50}};

TEST(Linear, EqualsTheSumInDoublePrecision) {
  for_each_isa([] {
    ThreadPool pool(2);
    for (const LayerSize& p : kLayerSizes) {
      const std::int64_t rows = 11;
      const auto x = random_values(rows * p.in, 1), w = random_values(p.out * p.in, 2),
                 bias = random_values(p.out, 3);
      std::vector<float> y(static_cast<std::size_t>(rows * p.out));
      linear(pool, x.data(), rows, p.in, w.data(), bias.data(), p.out, y.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t o = 0; o < p.out; ++o) {
          double sum = bias[o];
          for (std::int64_t k = 0; k < p.in; ++k)
            sum += double{x[r * p.in + k]} * double{w[o * p.in + k]};
          ASSERT_NEAR(y[r * p.out + o], sum, 1e-6 * (1 + std::sqrt(static_cast<double>(p.in))))
              << p.in << "x" << p.out << " at " << r << "," << o;
        }
      }
    }
  });
}

// The signature: a row's outputs have the same bits alone, among any number of rows, on any number
// of threads.
TEST(Linear, GivesARowTheSameBitsInEveryBatch) {
  for_each_isa([] {
    for (const LayerSize& p : kLayerSizes) {
      const std::int64_t rows_max = 150;
      const auto x = random_values(rows_max * p.in, 4), w = random_values(p.out * p.in, 5);
      std::vector<float> alone(static_cast<std::size_t>(rows_max * p.out));
      ThreadPool one(1);
      for (std::int64_t r = 0; r < rows_max; ++r) {
        linear(one, x.data() + r * p.in, 1, p.in, w.data(), nullptr, p.out,
               alone.data() + r * p.out);
      }
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        for (std::int64_t rows : {2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 64, 150}) {
          std::vector<float> y(static_cast<std::size_t>(rows * p.out));
          linear(pool, x.data(), rows, p.in, w.data(), nullptr, p.out, y.data());
          ASSERT_TRUE(std::equal(y.begin(), y.end(), alone.begin()))
              << p.in << "x" << p.out << ", " << rows << " rows, " << threads << " threads";
        }
      }
    }
  });
}

TEST(Linear, GivesTheSameBitsOnEveryInstructionSet) {
  for (const LayerSize& p : kLayerSizes) {
    const std::int64_t rows = 9;
    const auto x = random_values(rows * p.in, 6), w = random_values(p.out * p.in, 7),
               bias = random_values(p.out, 8);
    std::vector<std::vector<float>> results;
    for_each_isa([&] {
      ThreadPool pool(1);
      results.emplace_back(static_cast<std::size_t>(rows * p.out));
      linear(pool, x.data(), rows, p.in, w.data(), bias.data(), p.out, results.back().data());
    });
    for (const std::vector<float>& result : results)
      ASSERT_EQ(result, results.front()) << p.in << "x" << p.out;
  }
}

TEST(Linear, WritesSeveralProductsWithStrides) {
  ThreadPool pool(2);
  const std::int64_t rows = 5, in = 20, x_stride = 23;
  const auto x = random_values(rows * x_stride, 9), w = random_values(70 * in, 10);
  std::vector<float> together(static_cast<std::size_t>(rows * 100), -7.0F),
      expected(static_cast<std::size_t>(rows * 70));
  std::vector<float> dense;
  for (std::int64_t r = 0; r < rows; ++r)
    dense.insert(dense.end(), x.begin() + r * x_stride, x.begin() + r * x_stride + in);
  linear(pool, dense.data(), rows, in, w.data(), nullptr, 70, expected.data());
  const LinearOutput outputs[] = {
      {.weight = w.data(), .out = 30, .y = together.data(), .y_stride = 100},
      {.weight = w.data() + 30 * in, .out = 40, .y = together.data() + 30, .y_stride = 100}};
  linear(pool, x.data(), rows, in, x_stride, outputs);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < 100; ++o)
      ASSERT_EQ(together[r * 100 + o], o < 70 ? expected[r * 70 + o] : -7.0F);
  }
}

TEST(Linear, DoesNothingWithoutRows) {
  ThreadPool pool(1);
  linear(pool, nullptr, 0, 4, nullptr, nullptr, 4, nullptr);
}

}  // namespace
}  // namespace rl::kernel
