#include "rl/kernel/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "for_each_isa.h"
#include "random_values.h"

namespace rl::kernel {
namespace {

// A matrix, as it is or turned.
struct Matrix {
  std::vector<float> values;
  Factor factor;

  Matrix(std::int64_t rows, std::int64_t columns, bool turned, std::uint32_t seed)
      : values(random_values(rows * columns, seed)),
        factor(turned ? Factor{values.data(), 1, rows} : Factor{values.data(), columns, 1}) {}
  Matrix(const Matrix&) = delete;

  double at(std::int64_t i, std::int64_t j) const {
    return factor.data[i * factor.row_stride + j * factor.column_stride];
  }
};

struct Sizes {
  std::int64_t rows, columns, depth;
};

// Single elements, tails of tiles and of stretches, more than is packed at a time.
const std::vector<Sizes> kSizes = {{1, 1, 1},    {3, 5, 2},     {12, 32, 256}, {13, 33, 257},
                                   {30, 48, 64}, {150, 40, 70}, {7, 790, 300}, {160, 780, 513}};

Product product_of(const Matrix& a, const Matrix& b, const Sizes& sizes, float* c) {
  return {.a = a.factor,
          .b = b.factor,
          .rows = sizes.rows,
          .columns = sizes.columns,
          .depth = sizes.depth,
          .c = c,
          .c_stride = sizes.columns};
}

TEST(Product, EqualsTheSumInDoublePrecision) {
  for_each_isa([] {
    for (const Sizes& s : kSizes) {
      for (const bool turned : {false, true}) {
        const Matrix a(s.rows, s.depth, turned, 1), b(s.depth, s.columns, !turned, 2);
        std::vector<float> c(static_cast<std::size_t>(s.rows * s.columns), 7.0F);
        Product product = product_of(a, b, s, c.data());
        multiply(product);
        product.adds = true;
        multiply(product);
        for (std::int64_t i = 0; i < s.rows; ++i) {
          for (std::int64_t j = 0; j < s.columns; ++j) {
            double sum = 0;
            for (std::int64_t k = 0; k < s.depth; ++k) sum += a.at(i, k) * b.at(k, j);
            ASSERT_NEAR(c[i * s.columns + j], 2 * sum,
                        2e-6 * (1 + std::sqrt(static_cast<double>(s.depth))))
                << i << "," << j << " of " << s.rows << "x" << s.columns << "x" << s.depth;
          }
        }
      }
    }
  });
}

// What other ranks compute of a product is what one computes of it.
TEST(Product, APartHasTheBitsOfTheWhole) {
  std::mt19937 draw(3);
  for_each_isa([&] {
    for (int round = 0; round < 60; ++round) {
      const auto below = [&](std::int64_t most) {
        return static_cast<std::int64_t>(draw() % static_cast<std::uint32_t>(most));
      };
      const Sizes s{1 + below(170), 1 + below(560), 1 + below(600)};
      const Matrix a(s.rows, s.depth, round % 2 == 0, 4), b(s.depth, s.columns, round % 3 == 0, 5);
      std::vector<float> whole(static_cast<std::size_t>(s.rows * s.columns));
      multiply(product_of(a, b, s, whole.data()));
      const std::int64_t row = below(s.rows), column = below(s.columns);
      const Sizes part{1 + below(s.rows - row), 1 + below(s.columns - column), s.depth};
      std::vector<float> c(static_cast<std::size_t>(part.rows * part.columns));
      Product product = product_of(a, b, part, c.data());
      product.a.data += row * product.a.row_stride;
      product.b.data += column * product.b.column_stride;
      multiply(product);
      for (std::int64_t i = 0; i < part.rows; ++i) {
        for (std::int64_t j = 0; j < part.columns; ++j)
          ASSERT_EQ(c[i * part.columns + j], whole[(row + i) * s.columns + column + j]);
      }
    }
  });
}

TEST(Product, GivesTheSameBitsOnEveryInstructionSet) {
  for (const Sizes& s : kSizes) {
    const Matrix a(s.rows, s.depth, true, 6), b(s.depth, s.columns, false, 7);
    std::vector<std::vector<float>> results;
    for_each_isa([&] {
      results.emplace_back(static_cast<std::size_t>(s.rows * s.columns));
      multiply(product_of(a, b, s, results.back().data()));
    });
    for (const std::vector<float>& result : results) ASSERT_EQ(result, results.front());
  }
}

TEST(Product, WithoutDepthIsZeroAndWritesNothingElse) {
  std::vector<float> c(12, 7.0F);
  Product product{
      .a = {}, .b = {}, .rows = 2, .columns = 3, .c = c.data(), .c_stride = 6, .adds = true};
  multiply(product);
  EXPECT_EQ(c, std::vector<float>(12, 7.0F));
  product.adds = false;
  multiply(product);
  EXPECT_EQ(c, (std::vector<float>{0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7, 7}));
  product.rows = 0;
  product.c = nullptr;
  multiply(product);
}

}  // namespace
}  // namespace rl::kernel
