#include "rl/optim/orthogonalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace rl {
namespace {

std::vector<float> drawn_matrix(std::int64_t rows, std::int64_t columns) {
  std::mt19937 random(static_cast<unsigned>(rows * 1000 + columns));
  std::normal_distribution<float> normal;
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for (float& value : matrix) value = normal(random);
  return matrix;
}

using Doubles = std::vector<double>;

Doubles times(const Doubles& a, const Doubles& b, std::size_t rows, std::size_t depth,
              std::size_t columns) {
  Doubles c(rows * columns, 0.0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t j = 0; j < columns; ++j)
        c[i * columns + j] += a[i * depth + k] * b[k * columns + j];
  return c;
}

Doubles transposed(const Doubles& a, std::size_t rows, std::size_t columns) {
  Doubles t(a.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  return t;
}

// As the formula has it, of a matrix that is not higher than wide, in double.
Doubles iterated(Doubles x, std::size_t rows, std::size_t columns, int iterations) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares);
  for (int time = 0; time < iterations; ++time) {
    const Doubles gram = times(x, transposed(x, rows, columns), rows, columns, rows);
    Doubles factor = times(gram, gram, rows, rows, rows);
    for (std::size_t i = 0; i < factor.size(); ++i)
      factor[i] = 2.0315 * factor[i] - 4.7750 * gram[i];
    const Doubles added = times(factor, x, rows, rows, columns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + added[i];
  }
  return x;
}

TEST(Orthogonalize, IsTheFormula) {
  for (const auto& [rows, columns] : {std::pair(5, 7), {200, 203}, {203, 200}, {64, 400}, {1, 9}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    std::vector<float> matrix = drawn_matrix(rows, columns);
    const auto high = static_cast<std::size_t>(rows), wide = static_cast<std::size_t>(columns);
    Doubles expected(matrix.begin(), matrix.end());
    if (rows > columns)
      expected = transposed(iterated(transposed(expected, high, wide), wide, high, 5), wide, high);
    else
      expected = iterated(std::move(expected), high, wide, 5);
    kernel::ThreadPool pool(1);
    int products = 0;
    orthogonalize(pool, matrix, rows, columns, 5, [&] { ++products; });
    EXPECT_EQ(products, 15);
    for (std::size_t i = 0; i < matrix.size(); ++i) ASSERT_NEAR(matrix[i], expected[i], 1e-4) << i;
  }
}

TEST(Orthogonalize, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const auto& [rows, columns] : {std::pair(300, 500), {500, 300}, {192, 192}, {577, 1000}}) {
    kernel::ThreadPool one(1), three(3);
    std::vector<float> by_one = drawn_matrix(rows, columns), by_three = by_one;
    orthogonalize(one, by_one, rows, columns, 5);
    orthogonalize(three, by_three, rows, columns, 5);
    EXPECT_TRUE(by_one == by_three) << rows << " x " << columns;
  }
}

TEST(Orthogonalize, ZerosStayZeros) {
  kernel::ThreadPool pool(1);
  std::vector<float> matrix(24, 0.0F);
  orthogonalize(pool, matrix, 4, 6, 5);
  EXPECT_EQ(std::ranges::count(matrix, 0.0F), 24);
}

TEST(Orthogonalize, RowsAreNearlyOrthonormal) {
  for (const auto& [rows, columns] : {std::pair(3, 8), std::pair(8, 3)}) {
    std::vector<float> matrix = drawn_matrix(rows, columns);
    kernel::ThreadPool pool(1);
    orthogonalize(pool, matrix, rows, columns, 5);
    const int shorter = std::min(rows, columns);
    double trace = 0.0;  // the sum of squared singular values
    for (const float value : matrix) trace += double{value} * value;
    EXPECT_GT(trace, 0.45 * shorter);
    EXPECT_LT(trace, 1.45 * shorter);
  }
}

}  // namespace
}  // namespace rl
