#include "rl/optim/orthogonalize.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rl/kernel/product.h"
#include "rl/optim/each_element.h"
#include "rl/optim/optimizer.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// Of the quintic a x + b x^3 + c x^5, chosen for its slope at 0.
constexpr float kA = 3.4445F;
constexpr float kB = -4.7750F;
constexpr float kC = 2.0315F;
constexpr float kNormMin = 1e-7F;

constexpr std::int64_t kTile = 192;  // rows and columns of a product that a thread computes at once

std::int64_t tiles_of(std::int64_t count) { return (count + kTile - 1) / kTile; }

// c = a b, where that is symmetric, of N rows: half of it, and the same mirrored. The bits of
// an element and its mirror are equal, since their factors are.
void multiply_symmetric(kernel::ThreadPool& pool, const kernel::Factor& a, const kernel::Factor& b,
                        std::int64_t size, std::int64_t depth, float* c) {
  const std::int64_t tiles = tiles_of(size);
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::int64_t down = 0; down < tiles; ++down)
    for (std::int64_t across = 0; across <= down; ++across)
      places.emplace_back(down * kTile, across * kTile);
  const auto compute = [&](std::int64_t row, std::int64_t column) {
    const std::int64_t rows = std::min(kTile, size - row);
    const std::int64_t columns = std::min(kTile, size - column);
    kernel::multiply({.a = {a.data + row * a.row_stride, a.row_stride, a.column_stride},
                      .b = {b.data + column * b.column_stride, b.row_stride, b.column_stride},
                      .rows = rows,
                      .columns = columns,
                      .depth = depth,
                      .c = c + row * size + column,
                      .c_stride = size});
    for (std::int64_t i = row; row != column && i < row + rows; ++i)
      for (std::int64_t j = column; j < column + columns; ++j) c[j * size + i] = c[i * size + j];
  };
  pool.parallel_for(std::ssize(places), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto& [row, column] = places[static_cast<std::size_t>(i)];
      compute(row, column);
    }
  });
}

// c += a b, all row-major.
void multiply_add(kernel::ThreadPool& pool, const float* a, const float* b, std::int64_t rows,
                  std::int64_t columns, std::int64_t depth, float* c) {
  constexpr std::int64_t kWide = 4 * kTile;
  const std::int64_t across = (columns + kWide - 1) / kWide;
  const auto compute = [&](std::int64_t row, std::int64_t column) {
    kernel::multiply({.a = {a + row * depth, depth, 1},
                      .b = {b + column, columns, 1},
                      .rows = std::min(kTile, rows - row),
                      .columns = std::min(kWide, columns - column),
                      .depth = depth,
                      .c = c + row * columns + column,
                      .c_stride = columns,
                      .adds = true});
  };
  pool.parallel_for(tiles_of(rows) * across, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) compute(i / across * kTile, i % across * kWide);
  });
}

}  // namespace

void orthogonalize(kernel::ThreadPool& pool, std::span<float> matrix, std::int64_t rows,
                   std::int64_t columns, int iterations, const std::function<void()>& on_progress) {
  CHECK(std::ssize(matrix) == rows * columns);
  const std::int64_t shorter = std::min(rows, columns), longer = std::max(rows, columns);
  const auto square = static_cast<std::size_t>(shorter * shorter);
  const auto told = [&] {
    if (on_progress) on_progress();
  };
  std::vector<float> other(matrix.size()), gram(square), cubic(square);
  const float norm = std::max(static_cast<float>(l2_norm(pool, matrix)), kNormMin);
  for_each_element(pool, std::ssize(matrix), [&](std::size_t i) { matrix[i] = matrix[i] / norm; });
  std::span<float> x = matrix, next = other;
  for (int i = 0; i < iterations; ++i) {
    // x x^T of what is wide, x^T x of what is high.
    const kernel::Factor wide = rows > columns ? kernel::Factor{x.data(), 1, columns}
                                               : kernel::Factor{x.data(), columns, 1};
    multiply_symmetric(pool, wide, {wide.data, wide.column_stride, wide.row_stride}, shorter,
                       longer, gram.data());
    told();
    const kernel::Factor factor{gram.data(), shorter, 1};
    multiply_symmetric(pool, factor, factor, shorter, shorter, cubic.data());
    told();
    for_each_element(pool, std::ssize(gram),
                     [&](std::size_t at) { cubic[at] = kB * gram[at] + kC * cubic[at]; });
    for_each_element(pool, std::ssize(x), [&](std::size_t at) { next[at] = kA * x[at]; });
    if (rows > columns)
      multiply_add(pool, x.data(), cubic.data(), rows, columns, columns, next.data());
    else
      multiply_add(pool, cubic.data(), x.data(), rows, columns, rows, next.data());
    told();
    std::swap(x, next);
  }
  if (x.data() != matrix.data()) std::ranges::copy(x, matrix.begin());
}

std::int64_t orthogonalize_elements(std::int64_t rows, std::int64_t columns) {
  const std::int64_t shorter = std::min(rows, columns);
  return rows * columns + 2 * shorter * shorter;
}

}  // namespace rl
