#include "rl/kernel/int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "for_each_isa.h"
#include "random_values.h"
#include "rl/kernel/linear.h"

namespace rl::kernel {
namespace {

struct Rounded {
  std::vector<std::int8_t> values;
  std::vector<float> scales;

  Int8Weight weight() const { return {values.data(), scales.data()}; }
};

Rounded rounded(ThreadPool& pool, const std::vector<float>& weight, std::int64_t out,
                std::int64_t in) {
  Rounded copy;
  copy.values.assign(static_cast<std::size_t>(out * int8_stride(in)), 99);
  copy.scales.assign(static_cast<std::size_t>(out * int8_groups(in)), -7.0F);
  quantize_int8(pool, weight.data(), out, in, copy.values.data(), copy.scales.data());
  return copy;
}

std::vector<float> dense(ThreadPool& pool, const Rounded& copy, std::int64_t out, std::int64_t in) {
  std::vector<float> values(static_cast<std::size_t>(out * in) + 1, -7.0F);
  dequantize_int8(pool, copy.weight(), out, in, values.data());
  EXPECT_EQ(values.back(), -7.0F);  // not a float too many
  values.pop_back();
  return values;
}

struct Int8Product {
  std::int64_t in;
  std::int64_t out;
};

// Groups and vectors whole and begun, and outputs that no tile divides.
const std::vector<Int8Product> kInt8Products = {{1, 1},   {3, 5},    {16, 24},   {63, 7},  {64, 9},
                                                {65, 30}, {100, 31}, {576, 192}, {577, 50}};

TEST(Int8, IsNoFurtherThanHalfAScaleFromTheWeight) {
  for_each_isa([] {
    ThreadPool pool(2);
    for (const Int8Product& p : kInt8Products) {
      auto w = random_values(p.out * p.in, 11, 3.0F);
      for (std::size_t i = 0; i < w.size(); i += 37) w[i] *= 10;  // groups of very different scales
      const std::vector<float> back = dense(pool, rounded(pool, w, p.out, p.in), p.out, p.in);
      for (std::int64_t o = 0; o < p.out; ++o) {
        for (std::int64_t begin = 0; begin < p.in; begin += kInt8Group) {
          const auto first = w.begin() + o * p.in + begin;
          const auto last = first + std::min(kInt8Group, p.in - begin);
          float largest = 0;
          std::for_each(first, last, [&](float x) { largest = std::max(largest, std::fabs(x)); });
          for (auto x = first; x != last; ++x)
            ASSERT_LE(std::fabs(*x - back[static_cast<std::size_t>(x - w.begin())]),
                      largest / 254 * 1.0001F)
                << p.in << "x" << p.out;
        }
      }
    }
  });
}

TEST(Int8, KeepsWhatItCanSay) {
  ThreadPool pool(1);
  std::vector<float> w(130);
  for (std::size_t i = 0; i < w.size(); ++i)
    w[i] = 0.5F * static_cast<float>(static_cast<int>(i * 91 % 255) - 127);
  w[0] = w[64] = 63.5F;
  w[128] = -63.5F;
  EXPECT_EQ(dense(pool, rounded(pool, w, 1, 130), 1, 130), w);
}

TEST(Int8, ShowsWhatIsNotFiniteAndTakesTheSmallestForZero) {
  for_each_isa([] {
    ThreadPool pool(1);
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf("")}) {
      for (const std::size_t at : {0, 7, 63}) {
        std::vector<float> w(130, 1.0F);
        w[at] = bad;
        w[128] = 1e-31F, w[129] = -1e-40F;
        const std::vector<float> back = dense(pool, rounded(pool, w, 1, 130), 1, 130);
        EXPECT_TRUE(
            std::all_of(back.begin(), back.begin() + 64, [](float x) { return std::isnan(x); }));
        EXPECT_TRUE(
            std::all_of(back.begin() + 64, back.begin() + 128, [](float x) { return x == 1.0F; }));
        EXPECT_EQ(back[128], 0.0F);
        EXPECT_EQ(back[129], 0.0F);
      }
    }
  });
}

TEST(Int8, RoundsToTheSameBitsOnEveryInstructionSet) {
  for (const Int8Product& p : kInt8Products) {
    const auto w = random_values(p.out * p.in, 12);
    std::vector<Rounded> copies;
    for_each_isa([&] {
      ThreadPool pool(2);
      copies.push_back(rounded(pool, w, p.out, p.in));
    });
    for (const Rounded& copy : copies) {
      ASSERT_EQ(copy.values, copies.front().values) << p.in << "x" << p.out;
      ASSERT_EQ(copy.scales, copies.front().scales) << p.in << "x" << p.out;
    }
  }
}

// What makes an engine with 8-bit weights as good as one whose weights are what those stand for.
// The product has the bits of the product with the dequantized weight. That holds on every
// instruction set, however many rows come together, on however many threads.
TEST(Int8, MultipliesAsTheWeightThatItStandsFor) {
  std::vector<std::vector<float>> first;  // of the first instruction set
  for_each_isa([&] {
    std::vector<std::vector<float>> results;
    for (const Int8Product& p : kInt8Products) {
      const std::int64_t rows_max = 150;
      const auto x = random_values(rows_max * p.in, 13), w = random_values(p.out * p.in, 14),
                 bias = random_values(p.out, 15);
      ThreadPool one(1);
      const Rounded copy = rounded(one, w, p.out, p.in);
      const std::vector<float> plain = dense(one, copy, p.out, p.in);
      std::vector<float> expected(static_cast<std::size_t>(rows_max * p.out));
      linear(one, x.data(), rows_max, p.in, plain.data(), bias.data(), p.out, expected.data());
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        for (std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 64, 150}) {
          std::vector<float> y(static_cast<std::size_t>(rows * p.out));
          const LinearOutput output{
              .int8 = copy.weight(), .bias = bias.data(), .out = p.out, .y = y.data()};
          linear(pool, x.data(), rows, p.in, 0, std::span(&output, 1));
          ASSERT_TRUE(std::equal(y.begin(), y.end(), expected.begin()))
              << p.in << "x" << p.out << ", " << rows << " rows, " << threads << " threads";
        }
      }
      results.push_back(std::move(expected));
    }
    if (first.empty()) first = results;
    EXPECT_EQ(results, first);
  });
}

// Queries in fp32 with keys in 8 bits, in one loop.
TEST(Int8, SharesACallWithOtherWeights) {
  ThreadPool pool(2);
  const std::int64_t rows = 5, in = 100, out = 70;
  const auto x = random_values(rows * in, 16), w = random_values(out * in, 17);
  const Rounded copy = rounded(pool, w, out, in);
  std::vector<float> plain(static_cast<std::size_t>(rows * out)), int8(plain),
      expected_plain(plain), expected_int8(plain);
  linear(pool, x.data(), rows, in, w.data(), nullptr, out, expected_plain.data());
  linear(pool, x.data(), rows, in, dense(pool, copy, out, in).data(), nullptr, out,
         expected_int8.data());
  const LinearOutput outputs[] = {{.weight = w.data(), .out = out, .y = plain.data()},
                                  {.int8 = copy.weight(), .out = out, .y = int8.data()}};
  linear(pool, x.data(), rows, in, 0, outputs);
  EXPECT_EQ(plain, expected_plain);
  EXPECT_EQ(int8, expected_int8);
  EXPECT_NE(plain, int8);
}

}  // namespace
}  // namespace rl::kernel
